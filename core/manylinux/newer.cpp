// What g++ and the headers of a newer system call, and the libraries of manylinux_2_28 (glibc 2.28, libstdc++ of GCC 8)
// lack. Each library of ours has it for itself: nobody else sees it.

#include <dlfcn.h>
#include <pthread.h>
#include <sys/single_threaded.h>
#include <time.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <new>
#include <stdexcept>

// glibc 2.32. Whoever reads it may save atomic operations where it is not 0, which it never is here.
char __libc_single_threaded = 0;

namespace {

using ClockWait = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);

constexpr long second = 1'000'000'000;

// Without the function, waits are by the clock of the calendar, as libstdc++ makes them there: if that is set back
// meanwhile, they take longer.
int wait_by_calendar(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  timespec now{}, calendar{};
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &calendar);
  calendar.tv_sec += until->tv_sec - now.tv_sec;
  calendar.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (calendar.tv_nsec < 0) {
    --calendar.tv_sec;
    calendar.tv_nsec += second;
  } else if (calendar.tv_nsec >= second) {
    ++calendar.tv_sec;
    calendar.tv_nsec -= second;
  }
  return calendar.tv_sec < 0 ? ETIMEDOUT : pthread_cond_timedwait(condition, mutex, &calendar);
}

}  // namespace

extern "C" {

// glibc 2.30.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* until) {
  static const auto native = reinterpret_cast<ClockWait>(dlsym(RTLD_DEFAULT, "pthread_cond_clockwait"));
  return (native ? native : wait_by_calendar)(condition, mutex, clock, until);
}

// GCC 12: std::condition_variable::wait, under a newer version since it throws nothing.
void _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(std::condition_variable& condition,
                                                               std::unique_lock<std::mutex>& lock) {
  pthread_cond_wait(condition.native_handle(), lock.mutex()->native_handle());
}

// GCC 9: std::runtime_error's move constructor.
void _ZNSt13runtime_errorC2EOS_(void* place, std::runtime_error& from) { new (place) std::runtime_error(from); }

// GCC 11: std::__throw_bad_array_new_length.
[[noreturn]] void _ZSt28__throw_bad_array_new_lengthv() { throw std::bad_array_new_length(); }
}
