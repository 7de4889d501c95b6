#pragma once

#include <sched.h>

#include <atomic>

namespace anabranch {

// A mutex for what takes nanoseconds and is hardly ever contended: half the price of std::mutex where nobody else wants
// it, and one byte. Who waits gives up the processor after a while, so that a holder who was put aside can go on.
class SpinLock {
 public:
  void lock() noexcept {
    int tries = 0;
    while (held_.exchange(true, std::memory_order_acquire)) {
      while (held_.load(std::memory_order_relaxed)) {
        if (++tries > 64) sched_yield();
      }
    }
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace anabranch
