#include <atomic>
#include <iterator>
#include <memory>
#include <utility>

#include "anabranch/backend.hpp"
#include "anabranch/memory/memory.hpp"
#include "anabranch/runtime.hpp"

namespace anabranch {
namespace {

// Counts the pending uses and deletes itself when the last one is completed.
class Countdown {
 public:
  Countdown(std::vector<Use> uses, void (*done)(void*) noexcept, void* context)
      : uses_(std::move(uses)), done_(done), context_(context), left_(uses_.size() + 1) {
    waiters_ = std::make_unique<Arrival[]>(uses_.size());
  }

  void begin() noexcept {
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      waiters_[i].owner = this;
      waiters_[i].use = &uses_[i];
      Stream& stream = *uses_[i].stream;
      if (!stream.backend().notify(stream, uses_[i].point, waiters_[i])) settle(uses_[i]);
    }
    arrive();
  }

 private:
  struct Arrival final : Waiter {
    void wake(const Ref<Failure>&) noexcept override { owner->settle(*use); }
    Countdown* owner = nullptr;
    const Use* use = nullptr;
  };

  // Arrives, for a use that is completed or failed, once nothing is pending before it.
  void settle(const Use& use) noexcept {
    std::vector<Use> rest = pending_before(use);
    if (rest.empty()) return arrive();
    after(std::move(rest), [](void* self) noexcept { static_cast<Countdown*>(self)->arrive(); }, this);
  }

  void arrive() noexcept {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    done_(context_);
    delete this;
  }

  std::vector<Use> uses_;
  std::unique_ptr<Arrival[]> waiters_;
  void (*done_)(void*) noexcept;
  void* context_;
  std::atomic<std::size_t> left_;
};

}  // namespace

WorkState work_state(Stream& stream, Point point) noexcept {
  try {
    return stream.backend().query(stream, point) ? WorkState::completed : WorkState::pending;
  } catch (const Error&) {
    return WorkState::failed;
  }
}

std::vector<Use> pending_before(const Use& use) {
  std::vector<Use> found;
  if (work_state(*use.stream, use.point) != WorkState::failed) return found;
  for (Backend* device : devices()) {
    for (const Ref<Stream>& stream : device->streams()) {
      if (stream == use.stream) continue;
      const bool before = !use.when.lane || use.when.clock.covers(stream->lane().past().lane, 1);
      const Point newest = stream->issued();
      if (before && work_state(*stream, newest) == WorkState::pending) found.push_back({stream, newest});
    }
  }
  return found;
}

std::vector<Use> still_pending(std::vector<Use> uses) {
  std::vector<Use> before;
  std::erase_if(uses, [&before](const Use& use) {
    const WorkState state = work_state(*use.stream, use.point);
    if (state == WorkState::failed) {
      std::vector<Use> more = pending_before(use);
      before.insert(before.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    }
    return state != WorkState::pending;
  });
  uses.insert(uses.end(), std::make_move_iterator(before.begin()), std::make_move_iterator(before.end()));
  return uses;
}

void after(std::vector<Use> uses, void (*done)(void* context) noexcept, void* context) {
  (new Countdown(std::move(uses), done, context))->begin();
}

}  // namespace anabranch
