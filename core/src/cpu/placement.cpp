#include "placement.hpp"

namespace anabranch::cpu {

void Placement::wake_elsewhere(pid_t thread) noexcept {
  const int here = sched_getcpu();
  // Fails on machines with more processors than a `cpu_set_t` holds; those have idle ones to find.
  if (here < 0 || sched_getaffinity(thread, sizeof allowed_, &allowed_) != 0) return;
  cpu_set_t others = allowed_;
  CPU_CLR(static_cast<unsigned>(here), &others);
  narrowed_ = !CPU_EQUAL(&others, &allowed_) && sched_setaffinity(thread, sizeof others, &others) == 0;
}

void Placement::release() noexcept {
  if (!narrowed_) return;
  narrowed_ = false;
  sched_setaffinity(0, sizeof allowed_, &allowed_);
}

}  // namespace anabranch::cpu
