#include "anabranch/legacy_lanes.hpp"

#include <algorithm>

namespace anabranch {

void LegacyLanes::join_other_side(Stream& stream) {
  if (stream.role() != StreamRole::legacy) {
    const Stream* legacy = legacy_.load(std::memory_order_acquire);
    if (legacy) stream.lane().follow(legacy->lane(), stream.legacy_seen_);
    return;
  }
  legacy_.store(&stream, std::memory_order_release);
  if (!any_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(mutex_);
  any_.store(false, std::memory_order_relaxed);
  for (Stream* other : fresh_) {
    other->fresh_lane_.store(false, std::memory_order_release);
    stream.lane().follow(other->lane().past());
  }
  fresh_.clear();
  stream.lane().follow(Past{gone_});
  gone_ = Clock();
}

void LegacyLanes::note_blocking(Stream& stream) {
  if (stream.role() == StreamRole::legacy) return;
  std::lock_guard lock(mutex_);
  if (stream.fresh_lane_.exchange(true)) return;
  fresh_.push_back(&stream);
  any_.store(true, std::memory_order_release);
}

void LegacyLanes::leave(Stream& stream) noexcept {
  if (!stream.non_blocking()) {
    std::lock_guard lock(mutex_);
    if (stream.fresh_lane_.exchange(false)) {
      std::erase(fresh_, &stream);
      const Past past = stream.lane().past();
      gone_.learn(past.clock);
      gone_.learn(past.lane, past.count);
    }
  }
  stream.task_seen_.store(0, std::memory_order_relaxed);
  stream.legacy_seen_.store(0, std::memory_order_relaxed);
  stream.lane().restart();
}

}  // namespace anabranch
