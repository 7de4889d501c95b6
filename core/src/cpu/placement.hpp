#pragma once

#include <sched.h>
#include <sys/types.h>

namespace anabranch::cpu {

// Puts a sleeping thread on another processor than that of the thread that wakes it.
//
// Linux wakes a thread where it ran last or beside the thread that wakes it. In a virtual machine it holds idle
// processors for busy ones, because the host has taken them back (`vcpu_is_preempted`), and two threads then take turns
// on one processor for milliseconds while another one is idle. That is no loss where the waking thread is about to
// sleep, and a loss of half the machine where it shares its work.
class Placement {
 public:
  // Called while `thread` sleeps, by the thread that is about to wake it. Does nothing where the system forbids it, or
  // where the caller's processor is the only one that `thread` may use.
  void wake_elsewhere(pid_t thread) noexcept;
  // Called by that thread once it runs: it may use every processor again that it might use before.
  void release() noexcept;

 private:
  bool narrowed_ = false;
  cpu_set_t allowed_{};
};

}  // namespace anabranch::cpu
