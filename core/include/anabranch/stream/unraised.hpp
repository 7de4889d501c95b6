#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <utility>

#include "anabranch/error.hpp"

namespace anabranch {

// The failures of a device's streams that ended before anything raised them, for the next wait for the whole device.
// Any thread may call it, with any of the core's locks held.
class UnraisedFailures {
 public:
  // Keeps `failure` unless it was raised, is kept already, or is the driver's: that one fails the whole device. A
  // program that never waits for the device must not grow, so only the oldest `most` are kept.
  void add(Ref<Failure> failure) noexcept {
    if (!failure || failure->told() || failure->code() != 0) return;
    std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < count_; ++i) {
      if (kept_[i].get() == failure.get()) return;
    }
    if (count_ < most) kept_[count_++] = std::move(failure);
  }

  // Removes and returns the oldest one that nothing has raised meanwhile; null if there is none.
  Ref<Failure> take() noexcept {
    for (Ref<Failure> failure = pop(); failure; failure = pop()) {
      if (!failure->told()) return failure;
    }
    return nullptr;
  }

  static constexpr std::size_t most = 16;

 private:
  // The caller releases it without the lock, since that may run a payload's release.
  Ref<Failure> pop() noexcept {
    std::lock_guard lock(mutex_);
    if (count_ == 0) return nullptr;
    Ref<Failure> oldest = std::move(kept_[0]);
    for (std::size_t i = 1; i < count_; ++i) kept_[i - 1] = std::move(kept_[i]);
    --count_;
    return oldest;
  }

  std::mutex mutex_;
  std::array<Ref<Failure>, most> kept_;
  std::size_t count_ = 0;
};

}  // namespace anabranch
