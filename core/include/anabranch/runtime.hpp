#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "anabranch/backend.hpp"

namespace anabranch {

// The devices of this process, CPU devices first. Made at the first call, from the environment as it is then (see
// `RuntimeOptions`), and never destroyed: worker threads may outlive every destructor.
const std::vector<Backend*>& devices();

struct RuntimeOptions {
  int cpu_devices = 1;              // ANABRANCH_CPU_DEVICES
  int cpu_workers = 1;              // ANABRANCH_CPU_WORKERS, else the cores this process may use
  std::string first_device;         // ANABRANCH_DEVICE
  bool per_thread_default = false;  // CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM, else `free_threaded`
  std::string default_reason;       // which of the two decided
};

// Says on which build of Python this runs. Called once, before anything else.
void set_free_threaded(bool free_threaded) noexcept;
// Reads the environment at the first call; later calls give the same. Throws Error(value) for a variable that makes no
// sense, naming it.
const RuntimeOptions& runtime_options();

// Ordinal of the first current device. Throws Error(device) if ANABRANCH_DEVICE names none.
int first_device();
// The backend named "cpu", "cpu:1", "cuda:0" …; throws Error(device) naming those that exist.
Backend& find_device(const std::string& alias);

// The device whose memory the pointer is in, as its driver says; the first CPU device for any memory of the host,
// pinned or not. Throws DriverError.
Backend& owner_of(const void* pointer);

// Whether this process is the child of a fork() whose parent had used a device: nothing works here any more.
inline bool forked() noexcept;
// Throws Error(fork) if so.
void check_fork();

// Stops every device that was used. For the end of the process.
void stop_devices() noexcept;

// Set in such a child, by the fork itself; only for `forked`.
extern std::atomic<bool> is_forked_child;
inline bool forked() noexcept { return is_forked_child.load(std::memory_order_relaxed); }

// A number that no other thread of this process has or had.
std::uint64_t thread_serial() noexcept;

}  // namespace anabranch
