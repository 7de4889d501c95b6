#include <utility>

#include "anabranch/collective/collective.hpp"

namespace anabranch {

CollectiveWork::CollectiveWork(Ref<Channel> channel, std::vector<Transfer> transfers, std::vector<Ref<Storage>> kept,
                               Division division, Label label)
    : channel_(std::move(channel)),
      transfers_(std::move(transfers)),
      kept_(std::move(kept)),
      division_(division),
      label_(label) {}

void CollectiveWork::reserve() {
  const auto collective = make_ref<Collective>(channel_, transfers_, kept_, division_, label_);
  channel_->enqueue(collective);
  const std::lock_guard lock(mutex_);
  reserved_.push_back(collective);
}

void CollectiveWork::withdraw() {
  Ref<Collective> last;
  {
    const std::lock_guard lock(mutex_);
    if (reserved_.empty()) return;
    last = std::move(reserved_.back());
    reserved_.pop_back();
  }
  channel_->withdraw(last);
}

// Replays of an instance do not overlap, so they arrive in launch order.
Ref<HostOperation> CollectiveWork::make(const Ref<RefCounted>&) noexcept {
  const std::lock_guard lock(mutex_);
  if (reserved_.empty()) {
    auto missing = make_ref<HostOperation>();
    missing->complete(make_ref<Failure>("a replay reached a collective that its launch has not reserved"));
    return missing;
  }
  Ref<Collective> next = std::move(reserved_.front());
  reserved_.pop_front();
  return next;
}

}  // namespace anabranch
