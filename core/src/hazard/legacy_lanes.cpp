#include "anabranch/hazard/legacy_lanes.hpp"

#include <algorithm>

namespace anabranch {

void LegacyLanes::join_other_side(Stream& stream) {
  if (stream.role() == StreamRole::legacy) {
    legacy_.store(&stream, std::memory_order_release);
    if (!any_fresh_.load(std::memory_order_acquire)) return;
    std::lock_guard lock(mutex_);
    any_fresh_.store(false, std::memory_order_relaxed);
    for (Stream* other : fresh_) {
      other->fresh_lane_.store(false, std::memory_order_release);
      stream.lane().expect(other->lane().settled());
    }
    fresh_.clear();
    stream.lane().expect(Past{gone_});
    gone_ = Clock();
    return;
  }
  if (any_blocking_.load(std::memory_order_acquire) &&
      stream.legacy_seen_.load(std::memory_order_acquire) == version_.load(std::memory_order_acquire)) {
    return;
  }
  std::lock_guard lock(mutex_);
  stream.lane().expect(before_blocking());
  stream.legacy_seen_.store(version_.load(std::memory_order_relaxed), std::memory_order_release);
}

// Requires the mutex. The part of what a blocking stream's next operation comes after that is on the other side.
const Past& LegacyLanes::before_blocking() {
  if (!any_blocking_.load(std::memory_order_relaxed)) {
    // `past_` is not kept up to date before a blocking stream's first use.
    if (const Stream* legacy = legacy_.load(std::memory_order_acquire)) {
      past_ = legacy->lane().settled();
      version_.store(legacy->lane().version(), std::memory_order_release);
    }
    any_blocking_.store(true, std::memory_order_release);
  }
  return past_;
}

Past LegacyLanes::coming(Stream& stream) {
  if (stream.non_blocking()) return {};
  if (stream.role() == StreamRole::legacy) {
    join_other_side(stream);
    return {};
  }
  std::lock_guard lock(mutex_);
  return before_blocking();
}

void LegacyLanes::note_operation(Stream& stream) {
  std::lock_guard lock(mutex_);
  if (stream.role() == StreamRole::legacy) {
    past_ = stream.lane().settled();
    version_.store(stream.lane().version(), std::memory_order_release);
  } else if (!stream.fresh_lane_.exchange(true)) {
    fresh_.push_back(&stream);
    any_fresh_.store(true, std::memory_order_release);
  }
}

void LegacyLanes::leave(Stream& stream) noexcept {
  if (!stream.non_blocking()) {
    std::lock_guard lock(mutex_);
    if (stream.fresh_lane_.exchange(false)) {
      std::erase(fresh_, &stream);
      const Past past = stream.lane().settled();
      gone_.join(past.clock);
      gone_.join(past.lane, past.count);
    }
  }
  stream.forget_seen();
  stream.lane().restart();
}

}  // namespace anabranch
