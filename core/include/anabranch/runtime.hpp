#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "anabranch/backend.hpp"

namespace anabranch {

// The devices of this process, CPU devices first. Created at the first call from the current environment (see
// `RuntimeOptions`) and never destroyed: worker threads may outlive every destructor.
const std::vector<Backend*>& devices();

struct RuntimeOptions {
  int cpu_devices = 1;              // ANABRANCH_CPU_DEVICES
  int cpu_workers = 1;              // ANABRANCH_CPU_WORKERS, else the number of cores that this process may use
  std::string first_device;         // ANABRANCH_DEVICE
  bool per_thread_default = false;  // CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM, else `free_threaded`
  std::string default_reason;       // the setting that decided `per_thread_default`
};

// Sets whether this is a free-threaded build of Python. Call it once, before anything else.
void set_free_threaded(bool free_threaded) noexcept;
// Reads the environment at the first call; later calls return the same options. Throws Error(value), which names the
// variable, for an invalid value.
const RuntimeOptions& runtime_options();

// The ordinal of the device that is current at the start. Throws Error(device) if ANABRANCH_DEVICE names no device.
int first_device();
// The backend named "cpu", "cpu:1", "cuda:0" …. Throws Error(device), which lists the existing names.
Backend& find_device(const std::string& alias);

// The device whose memory contains the pointer, according to its driver; the first CPU device for all host memory,
// pinned or not. Throws DriverError.
Backend& owner_of(const void* pointer);

// Whether this process is a fork() child of a parent that had used a device; nothing works in such a child.
inline bool forked() noexcept;
// Throws Error(fork) if so.
void check_fork();

// Stops every device that was used. Call it at the end of the process.
void stop_devices() noexcept;

// Set in such a child by the fork handler. Only `forked` reads it.
extern std::atomic<bool> is_forked_child;
inline bool forked() noexcept { return is_forked_child.load(std::memory_order_relaxed); }

// A number that is unique among all threads, past and present, of this process.
std::uint64_t thread_serial() noexcept;

}  // namespace anabranch
