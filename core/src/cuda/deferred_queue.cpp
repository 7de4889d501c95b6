#include "deferred_queue.hpp"

#include <algorithm>
#include <iterator>

#include "backend.hpp"

namespace anabranch::cuda {

void DeferredQueue::push(std::unique_ptr<Operation> operation, Point point) {
  operation->point_ = point;
  operations_.push_back(std::move(operation));
}

std::unique_ptr<Operation> DeferredQueue::pop() noexcept {
  std::unique_ptr<Operation> first = std::move(operations_.front());
  operations_.pop_front();
  return first;
}

void DeferredQueue::insert_direct(Point point) {
  if (point <= submitted_.load()) return;
  auto place = operations_.begin();
  for (auto held = operations_.begin(); held != operations_.end(); ++held) {
    if ((*held)->point() != 0 && (*held)->point() < point) place = held + 1;
  }
  // The first operation may be running, so nothing can precede it.
  if (place == operations_.begin()) {
    submitted_.store(point);
  } else {
    auto mark = std::make_unique<MarkOperation>();
    mark->point_ = point;
    operations_.insert(place, std::move(mark));
  }
}

std::vector<DeferredQueue::Follower> DeferredQueue::submit_up_to(Point point) noexcept {
  submitted_.store(point, std::memory_order_release);
  const auto first = std::partition(followers_.begin(), followers_.end(),
                                    [point](const Follower& follower) { return follower.point > point; });
  std::vector<Follower> ready(std::make_move_iterator(first), std::make_move_iterator(followers_.end()));
  followers_.erase(first, followers_.end());
  return ready;
}

void DeferredQueue::wake(const std::vector<Follower>& ready) noexcept {
  for (const Follower& follower : ready) follower.stream->device().poller().ready(*follower.stream);
}

void DeferredQueue::add_follower(Point point, CudaStream& stream) {
  followers_.push_back({point, Ref<CudaStream>::share(&stream)});
}

}  // namespace anabranch::cuda
