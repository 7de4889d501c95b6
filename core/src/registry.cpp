#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <string>

#include "anabranch/runtime.hpp"
#include "cpu/backend.hpp"
#include "cuda/backend.hpp"

// The one place that names the backends.

namespace anabranch {
namespace {

std::atomic<bool> used{false};
std::atomic<bool> free_threaded{false};

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? value : nullptr;
}

int positive_variable(const char* name, int otherwise) {
  const char* text = variable(name);
  if (!text) return otherwise;
  int value = 0;
  const char* end = text + std::char_traits<char>::length(text);
  const auto [stopped, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stopped != end || value < 1 || value > 1024) {
    throw Error(ErrorKind::value, std::string(name) + " is \"" + text + "\"; it must be a number from 1 to 1024");
  }
  return value;
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(CPU_COUNT(&set), 1) : 1;
}

// The memory that this process may use: the machine's, or the limit of its control group if that is lower.
std::size_t usable_memory() {
  std::size_t bytes =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  char text[32];
  const int file = open("/sys/fs/cgroup/memory.max", O_RDONLY | O_CLOEXEC);
  if (file < 0) return bytes;
  const ssize_t length = read(file, text, sizeof text);
  close(file);
  std::size_t limit = 0;
  if (length > 0 && std::from_chars(text, text + length, limit).ec == std::errc()) bytes = std::min(bytes, limit);
  return bytes;
}

RuntimeOptions read_options() {
  RuntimeOptions options;
  options.cpu_devices = positive_variable("ANABRANCH_CPU_DEVICES", 1);
  options.cpu_workers = positive_variable("ANABRANCH_CPU_WORKERS", usable_cores());
  if (const char* device = variable("ANABRANCH_DEVICE")) options.first_device = device;
  const char* name = "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM";
  if (const char* text = variable(name)) {
    const std::string value = text;
    if (value != "0" && value != "1")
      throw Error(ErrorKind::value, std::string(name) + " is \"" + value + "\"; it must be 0 or 1");
    options.per_thread_default = value == "1";
    options.default_reason = std::string(name) + "=" + value;
  } else {
    options.per_thread_default = free_threaded;
    options.default_reason = free_threaded ? "free-threaded Python" : "Python with a global interpreter lock";
  }
  return options;
}

std::vector<Backend*> make_devices() {
  const RuntimeOptions& options = runtime_options();
  // A forked child has no workers, even if another library forked.
  pthread_atfork(nullptr, nullptr, [] {
    if (used) is_forked_child = true;
  });
  std::vector<Backend*> devices;
  const std::size_t memory = usable_memory() / static_cast<std::size_t>(options.cpu_devices);
  for (int i = 0; i < options.cpu_devices; ++i)
    devices.push_back(new cpu::CpuBackend(i, options.cpu_workers, memory, cuda::pinned_source()));
  for (int i = 0; i < cuda::installation().devices; ++i) devices.push_back(new cuda::CudaBackend(i, i));
  used = true;
  return devices;
}

std::string alias(const Backend& backend) {
  return backend.capabilities().kind + ":" + std::to_string(backend.capabilities().index);
}

}  // namespace

void set_free_threaded(bool value) noexcept { free_threaded = value; }

const RuntimeOptions& runtime_options() {
  static const RuntimeOptions* options = new RuntimeOptions(read_options());
  return *options;
}

const std::vector<Backend*>& devices() {
  check_fork();
  static const auto* devices = new std::vector<Backend*>(make_devices());
  return *devices;
}

Backend& find_device(const std::string& name) {
  std::string existing;
  for (Backend* device : devices()) {
    if (alias(*device) == name || (device->capabilities().index == 0 && device->capabilities().kind == name))
      return *device;
    existing += (existing.empty() ? "" : ", ") + alias(*device);
  }
  const bool cuda = name.starts_with("cuda");
  const std::string& missing = cuda::installation().missing;
  throw Error(ErrorKind::device,
              "no device \"" + name + "\"; there are " + existing + (cuda && !missing.empty() ? "; " + missing : ""));
}

Backend& owner_of(const void* pointer) {
  const int ordinal = cuda::device_of(pointer);
  for (Backend* device : devices()) {
    const auto* gpu = dynamic_cast<const cuda::CudaBackend*>(device);
    if (ordinal < 0 || (gpu && gpu->ordinal() == ordinal)) return *device;
  }
  throw Error(ErrorKind::device, "no device has the memory of this pointer");
}

int first_device() {
  const std::string& name = runtime_options().first_device;
  const auto& all = devices();
  if (name.empty()) {
    const auto cuda = std::find_if(all.begin(), all.end(),
                                   [](const Backend* device) { return device->capabilities().kind == "cuda"; });
    return cuda == all.end() ? 0 : static_cast<int>(cuda - all.begin());
  }
  try {
    return static_cast<int>(std::find(all.begin(), all.end(), &find_device(name)) - all.begin());
  } catch (const Error& error) {
    throw Error(error.kind(), std::string("ANABRANCH_DEVICE names ") + error.what());
  }
}

std::atomic<bool> is_forked_child{false};

void check_fork() {
  if (forked()) {
    throw Error(
        ErrorKind::fork,
        "this process was forked from one that had used a device, whose threads and driver state do not exist here; "
        "start processes with the \"spawn\" or \"forkserver\" method, or fork before the first use");
  }
}

void stop_devices() noexcept {
  if (!used || forked()) return;
  for (Backend* device : devices()) device->stop();
}

std::uint64_t thread_serial() noexcept {
  static std::atomic<std::uint64_t> next{0};
  thread_local const std::uint64_t serial = ++next;
  return serial;
}

}  // namespace anabranch
