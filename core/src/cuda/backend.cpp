#include "backend.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "anabranch/runtime.hpp"

namespace anabranch::cuda {
namespace {

// The devices in use.
std::mutex opened_mutex;
std::vector<CudaBackend*> opened_devices;

}  // namespace

CudaBackend::CudaBackend(int ordinal, int index) : ordinal_(ordinal) {
  const auto need = [](CUresult status) {
    if (status != CUDA_SUCCESS) throw driver_error(status, "querying a device");
  };
  need(driver->cuDeviceGet(&device_, ordinal));
  char name[256] = {};
  need(driver->cuDeviceGetName(name, sizeof name, device_));
  need(driver->cuDeviceTotalMem(&capabilities_.total_memory, device_));
  capabilities_.kind = "cuda";
  capabilities_.index = index;
  capabilities_.name = name;
  // The driver's priority range, which it reports only once there is a context.
  const int major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  capabilities_.highest_priority = major >= 7 ? -5 : -1;
  capabilities_.architecture = 10 * major + attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  capabilities_.resident_threads = std::int64_t{attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)} *
                                   attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
}

int CudaBackend::attribute(CUdevice_attribute which) const {
  int value = 0;
  if (const CUresult status = driver->cuDeviceGetAttribute(&value, which, device_); status != CUDA_SUCCESS) {
    throw driver_error(status, "querying a device");
  }
  return value;
}

CUcontext CudaBackend::open() {
  if (!is_open_.load(std::memory_order_acquire)) [[unlikely]] {
    std::call_once(opened_, [this] { open_now(); });
    is_open_.store(true, std::memory_order_release);
  }
  return context_;
}

void CudaBackend::open_now() {
  CUcontext context = nullptr;
  check(driver->cuDevicePrimaryCtxRetain(&context, device_), "making a context");
  context_ = context;
  const ContextScope scope(context);
  memory_.open();
  events_.open();
  transfer_.open();
  auto* legacy = new CudaStream(*this, order_, reinterpret_cast<CUstream>(1), CudaStream::Origin::own);
  legacy->open({.non_blocking = false, .role = StreamRole::legacy, .name = "legacy"});
  legacy_ = Ref<CudaStream>::take(legacy);
  order_.legacy = legacy;
  living_.push_back(legacy);
  std::lock_guard lock(opened_mutex);
  opened_devices.push_back(this);
}

CUcontext any_context() {
  {
    std::lock_guard lock(opened_mutex);
    if (!opened_devices.empty()) return opened_devices.front()->context();
  }
  for (Backend* device : devices()) {
    if (auto* own = dynamic_cast<CudaBackend*>(device)) return own->open();
  }
  throw Error(ErrorKind::device, "there is no CUDA device");
}

// -- streams --

// Prefers the newest stream if its work is known to be completed, else one of the oldest, which had the most time. In a
// stream with pending work, new work would wait.
Ref<CudaStream> CudaBackend::reuse(std::deque<CudaStream*>& idle) noexcept {
  if (idle.empty()) return nullptr;
  auto chosen = idle.end() - 1;
  if (!(*chosen)->idle()) {
    const auto last = idle.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(idle.size(), 4));
    chosen = std::find_if(idle.begin(), last, [](const CudaStream* stream) {
      return stream->idle() || driver->cuStreamQuery(stream->native_) == CUDA_SUCCESS;
    });
    if (chosen == last) return nullptr;
  }
  CudaStream* stream = *chosen;
  idle.erase(chosen);
  stream->revive();
  return Ref<CudaStream>::take(stream);
}

Ref<Stream> CudaBackend::create_stream(StreamOptions options) {
  const ContextScope scope(open());
  if (Ref<Failure> failed = failure()) throw AsyncError(std::move(failed));
  options.priority = std::clamp(options.priority, capabilities_.highest_priority, capabilities_.lowest_priority);
  options.role = StreamRole::created;
  {
    std::lock_guard lock(mutex_);
    if (Ref<CudaStream> stream = reuse(idle_[{options.priority, options.non_blocking}])) {
      stream->open(std::move(options));
      living_.push_back(stream.get());
      return stream;
    }
  }
  const unsigned flags = options.non_blocking ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT;
  CUstream native = nullptr;
  check(driver->cuStreamCreateWithPriority(&native, flags, options.priority), "creating a stream");
  auto stream = make_ref<CudaStream>(*this, order_, native, CudaStream::Origin::own);
  if (under_sanitizer()) driver->cuCtxSynchronize();
  driver->cuStreamGetPriority(native, &options.priority);
  stream->open(std::move(options));
  std::lock_guard lock(mutex_);
  by_handle_[native] = stream.get();
  living_.push_back(stream.get());
  return stream;
}

Ref<CudaStream> CudaBackend::open_blocking() {
  Ref<Stream> stream = create_stream({.non_blocking = false});
  return Ref<CudaStream>::take(static_cast<CudaStream*>(stream.leak()));
}

void CudaBackend::recycle(CudaStream& stream) noexcept {
  if (!std::exchange(stream.ended_, false)) note_end(stream);
  stream.close();
  legacy_lanes().leave(stream);
  // Released once the stream is listed again, so that the release of the kernel's code waits for the stream.
  const Ref<Kernel> kernel = stream.take_kernel();
  const bool reusable = stream.role() == StreamRole::created && stream.origin_ == CudaStream::Origin::own;
  {
    std::lock_guard lock(mutex_);
    std::erase(living_, &stream);
    if (reusable) {
      idle_[{stream.priority(), stream.non_blocking()}].push_back(&stream);
      return;
    }
    std::erase_if(by_handle_, [&stream](const auto& known) { return known.second == &stream; });
  }
  delete &stream;
}

Ref<Stream> CudaBackend::default_stream(StreamRole role) {
  open();
  if (role == StreamRole::legacy) return legacy_;
  thread_local OwnStreams own;
  Ref<CudaStream>& stream = own.streams[this];
  if (!stream) {
    stream = make_ref<CudaStream>(*this, order_, reinterpret_cast<CUstream>(2), CudaStream::Origin::own);
    stream->open({.non_blocking = false, .role = StreamRole::per_thread, .name = "per-thread"});
    std::lock_guard lock(mutex_);
    living_.push_back(stream.get());
  }
  return stream;
}

Ref<Stream> CudaBackend::find_stream(std::uintptr_t handle) {
  open();
  if (handle == 1) return default_stream(StreamRole::legacy);
  if (handle == 2) return default_stream(StreamRole::per_thread);
  const auto unknown = [&] {
    return Error(ErrorKind::value, "no stream of " + alias() + " has the handle " + std::to_string(handle));
  };
  const CUstream native = reinterpret_cast<CUstream>(handle);
  {
    std::lock_guard lock(mutex_);
    const auto known = by_handle_.find(native);
    if (known != by_handle_.end()) {
      if (known->second->try_retain()) return Ref<Stream>::take(known->second);
      if (known->second->origin_ == CudaStream::Origin::own) throw unknown();
    }
  }
  // The driver dereferences the handle.
  if (handle < 65536 || handle % alignof(void*) != 0) throw unknown();
  const ContextScope scope(context_);
  CUcontext owner = nullptr;
  if (driver->cuStreamGetCtx(native, &owner) != CUDA_SUCCESS || owner != context_) throw unknown();
  return adopt(native);
}

Ref<CudaStream> CudaBackend::adopt(CUstream native) {
  StreamOptions options;
  unsigned flags = 0;
  check(driver->cuStreamGetFlags(native, &flags), "querying a stream");
  check(driver->cuStreamGetPriority(native, &options.priority), "querying a stream");
  options.non_blocking = flags & CU_STREAM_NON_BLOCKING;
  auto stream = make_ref<CudaStream>(*this, order_, native, CudaStream::Origin::external);
  stream->open(std::move(options));
  std::lock_guard lock(mutex_);
  CudaStream*& known = by_handle_[native];
  if (known && known->try_retain()) {
    Ref<CudaStream> first = Ref<CudaStream>::take(known);
    living_.push_back(stream.get());  // `recycle` removes it again
    return first;
  }
  known = stream.get();
  living_.push_back(stream.get());
  return stream;
}

void CudaBackend::release_external(Stream& stream) noexcept {
  if (as_own(stream).origin_ != CudaStream::Origin::external) return;
  try {
    as_own(stream).cover(as_own(stream).submitted());
  } catch (const Error&) {
    return;  // already destroyed, or the device has failed: nothing can be queried
  }
}

std::vector<Ref<Stream>> CudaBackend::streams() {
  std::vector<Ref<Stream>> found = held_streams();
  if (!context_) return found;
  const ContextScope scope(context_);
  std::lock_guard lock(mutex_);
  for (auto& [kind, idle] : idle_) {
    // Nothing refers to these streams any more, but they may have pending work.
    const auto busy = std::partition(idle.begin(), idle.end(), [](const CudaStream* stream) {
      return driver->cuStreamQuery(stream->native_) == CUDA_SUCCESS;
    });
    for (auto stream = busy; stream != idle.end(); ++stream) {
      (*stream)->revive();
      (*stream)->ended_ = true;
      living_.push_back(*stream);
      found.push_back(Ref<CudaStream>::take(*stream));
    }
    idle.erase(busy, idle.end());
  }
  return found;
}

std::vector<Ref<Stream>> CudaBackend::held_streams() {
  std::vector<Ref<Stream>> living;
  std::lock_guard lock(mutex_);
  for (CudaStream* stream : living_) {
    if (stream->try_retain()) living.push_back(Ref<Stream>::take(stream));
  }
  return living;
}

// -- code --

Ref<Library> CudaBackend::load_library(std::span<const std::byte> image) {
  open();
  return make_ref<CudaLibrary>(*this, image.data());
}

// -- end --

void CudaBackend::stop() noexcept {
  poller_.stop(std::chrono::seconds(5));
  stopped_ = true;
  // A query takes microseconds, unless the driver hangs.
  const auto most = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (asking_ != 0 && std::chrono::steady_clock::now() < most) std::this_thread::yield();
}

// The driver shuts down with the process and must not be called afterwards, so a thread that wants to waits forever.
CudaBackend::Asking::Asking(CudaBackend& device) noexcept : device_(device) {
  ++device_.asking_;
  if (!device_.stopped_) return;
  --device_.asking_;
  while (true) pause();
}

}  // namespace anabranch::cuda
