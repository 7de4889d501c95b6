// Where a worker wakes that another worker shares its kernel with.
#include "cpu/placement.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <latch>
#include <semaphore>
#include <thread>

#include "check.hpp"

namespace anabranch::cpu {
namespace {

using namespace check;

cpu_set_t allowed_processors() {
  cpu_set_t allowed;
  CHECK_EQUAL(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  return allowed;
}

void allow(const cpu_set_t& processors) { CHECK_EQUAL(sched_setaffinity(0, sizeof processors, &processors), 0); }

cpu_set_t only(int processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(processor), &one);
  return one;
}

// A thread that sleeps, and when it is woken says where it is and where it might be.
struct Sleeper {
  explicit Sleeper(const cpu_set_t& allowed)
      : thread([this, allowed] {
          allow(allowed);
          id = static_cast<pid_t>(syscall(SYS_gettid));
          started.count_down();
          wake.acquire();
          processor = sched_getcpu();
          placement.release();
          afterwards = allowed_processors();
        }) {
    started.wait();
  }

  void wake_up() {
    wake.release();
    thread.join();
  }

  Placement placement;
  pid_t id = 0;
  int processor = -1;
  cpu_set_t afterwards{};
  std::latch started{1};
  std::binary_semaphore wake{0};
  std::thread thread;
};

TEST(a_thread_wakes_on_another_processor_and_may_use_all_again) {
  const cpu_set_t allowed = allowed_processors();
  if (CPU_COUNT(&allowed) < 2) return;
  const int here = sched_getcpu();
  allow(only(here));
  for (int round = 0; round < 20; ++round) {
    Sleeper sleeper(allowed);
    sleeper.placement.wake_elsewhere(sleeper.id);
    sleeper.wake_up();
    CHECK(sleeper.processor != here);
    CHECK(CPU_EQUAL(&sleeper.afterwards, &allowed));
  }
  allow(allowed);
}

TEST(a_thread_with_one_processor_keeps_it) {
  const cpu_set_t allowed = allowed_processors();
  const int here = sched_getcpu();
  allow(only(here));
  Sleeper sleeper(only(here));
  sleeper.placement.wake_elsewhere(sleeper.id);
  sleeper.wake_up();
  const cpu_set_t one = only(here);
  CHECK_EQUAL(sleeper.processor, here);
  CHECK(CPU_EQUAL(&sleeper.afterwards, &one));
  allow(allowed);
}

TEST(a_thread_that_is_woken_anywhere_keeps_its_processors) {
  const cpu_set_t allowed = allowed_processors();
  Sleeper sleeper(allowed);
  sleeper.wake_up();
  CHECK(CPU_EQUAL(&sleeper.afterwards, &allowed));
}

}  // namespace
}  // namespace anabranch::cpu
