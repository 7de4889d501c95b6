#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "anabranch/backend.hpp"
#include "condition.hpp"
#include "kernel.hpp"
#include "memory.hpp"
#include "poller.hpp"
#include "stream.hpp"
#include "transfer.hpp"

namespace anabranch::cuda {

// Makes a device's context current for other libraries.
class ContextActivation final : public Activation {
 public:
  explicit ContextActivation(CUcontext context) {
    driver->cuCtxGetCurrent(&before_);
    driver->cuCtxSetCurrent(context);
  }
  // Runs on the thread of the constructor; see `ContextScope`.
  ~ContextActivation() override { driver->cuCtxSetCurrent(before_); }

 private:
  CUcontext before_ = nullptr;
};

// A GPU, through its primary context, which other libraries use, too. The context is created at the device's first use,
// not when the device is found. Lives until the process ends.
class CudaBackend final : public Backend {
 public:
  // Requires that `installation` has found the device with that ordinal.
  CudaBackend(int ordinal, int index);

  Ref<Stream> create_stream(StreamOptions options) override;
  Ref<Stream> default_stream(StreamRole role) override;
  Ref<Stream> find_stream(std::uintptr_t handle) override;
  std::vector<Ref<Stream>> streams() override;

  std::vector<Record> frontier(Stream& stream) override;
  Point newest(Stream& stream) override;
  Point record(Stream& stream) override;
  Point record(Stream& stream, const EventOptions& options, Ref<Marker>& marker) override;
  Ref<Marker> make_marker(const EventOptions& options) override;
  std::optional<double> elapsed(const Record& begin, const Record& end) override;
  Point wait(Stream& stream, Stream& target, Point point, Marker* marker = nullptr) override;
  bool query(Stream& stream, Point point, Marker* marker = nullptr) override;
  bool synchronize(Stream& stream, Point point, std::chrono::nanoseconds timeout, Marker* marker = nullptr) override;
  bool flush(Stream& target, Point point, std::chrono::nanoseconds timeout) override;
  bool notify(Stream& stream, Point point, Waiter& waiter, Marker* marker = nullptr) override;
  void release_external(Stream& stream) noexcept override;

  Allocation allocate(Stream* stream, std::size_t bytes, MemoryKind kind) override;
  void free(std::byte* pointer, std::size_t bytes, MemoryKind kind, std::vector<Use>& uses) noexcept override;
  std::size_t free_memory() override;
  void trim() noexcept override { memory_.trim(); }

  Point copy(Stream& stream, const Elements& dst, const Elements& src, std::int64_t count) override;
  Point fill(Stream& stream, const Elements& dst, const void* value, std::int64_t count) override;
  Point launch(Stream& stream, Kernel& kernel, const LaunchShape& shape,
               std::span<const std::uint64_t> arguments) override;
  Point launch_grid(Stream& stream, Kernel& kernel, const LaunchGrid& grid,
                    std::span<const std::uint64_t> arguments) override;
  Point external(Stream& stream, Ref<ExternalWork> work) override;
  Point suspend(Stream& stream, Ref<HostOperation> pending) override;

  bool known_completed(Stream& stream, Point point) noexcept override {
    return static_cast<CudaStream&>(stream).known_completed(point);
  }
  Ref<Library> load_library(std::span<const std::byte> image) override;
  Ref<Executable> instantiate(const Ref<Graph>& graph, const Ref<Works>& works) override;
  std::unique_ptr<Activation> activate() override { return std::make_unique<ContextActivation>(open()); }

  void stop() noexcept override;

  // For the other files of this folder.
  CUcontext context() const noexcept { return context_; }
  // Creates the context at the first call. Throws DriverError.
  CUcontext open();
  int ordinal() const noexcept { return ordinal_; }
  std::string alias() const { return "cuda:" + std::to_string(capabilities_.index); }
  int attribute(CUdevice_attribute which) const;
  Poller& poller() noexcept { return poller_; }
  EventPool& events() noexcept { return events_; }
  Transfer& transfer() noexcept { return transfer_; }
  Conditions& conditions() noexcept { return conditions_; }
  MemoryPool& memory() noexcept { return memory_; }
  // Gives this device access to the elements, if they are in another GPU's memory.
  void reach(const Elements& elements) {
    if (elements.home == this || !elements.home || elements.home->capabilities().host_memory) return;
    static_cast<CudaBackend&>(elements.home->device()).memory_.share_with(*this);
  }
  // Throws DriverError for any status but success, or AsyncError for one that fails the device for good.
  void check(CUresult status, const char* what) {
    if (status != CUDA_SUCCESS) [[unlikely]]
      fail(status, what);
  }
  // The same, but returns false for work that is not completed.
  bool done(CUresult status, const char* what) {
    if (status == CUDA_ERROR_NOT_READY) return false;
    check(status, what);
    return true;
  }
  // Call this after enqueueing work that slows down queries: every query in the context then takes ten times as long,
  // for any stream, until a call that blocks for the whole context. Driver 580, measured on an H200: the driver's
  // copies within the GPU's memory, and its memsets from 64 KiB. `Transfer` avoids both where it can.
  void slow_queries() noexcept {
    if (!queries_slow_.load(std::memory_order_relaxed)) queries_slow_.store(true, std::memory_order_relaxed);
  }
  // Whether such work was enqueued since the last call.
  bool quicken_queries() noexcept {
    return queries_slow_.load(std::memory_order_relaxed) && queries_slow_.exchange(false, std::memory_order_relaxed);
  }
  // The failure of the device, or null.
  Ref<Failure> failure() const { return failed_.load(std::memory_order_acquire) ? failure_ : nullptr; }
  Ref<CudaStream> open_blocking();
  // The streams that are in use.
  std::vector<Ref<Stream>> held_streams();
  // Called when the last reference to the stream was dropped.
  void recycle(CudaStream& stream) noexcept;

 private:
  [[noreturn]] void fail(CUresult status, const char* what);
  Ref<CudaStream> reuse(std::deque<CudaStream*>& idle) noexcept;
  Ref<CudaStream> adopt(CUstream native);
  void open_now();

  const int ordinal_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  std::once_flag opened_;
  std::atomic<bool> is_open_{false};
  Poller poller_;
  EventPool events_{*this};
  MemoryPool memory_{*this};
  Transfer transfer_{*this};
  Conditions conditions_{*this};
  LegacyOrder order_;

  std::mutex mutex_;
  std::unordered_map<CUstream, CudaStream*> by_handle_;  // created and external streams
  std::vector<CudaStream*> living_;                      // all stream objects except idle ones
  // By priority and whether non-blocking; oldest first.
  std::map<std::pair<int, bool>, std::deque<CudaStream*>> idle_;
  Ref<CudaStream> legacy_;

  // Exists while a host thread without the interpreter lock queries the driver.
  class Asking {
   public:
    explicit Asking(CudaBackend& device) noexcept;
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;
    // Runs on the thread of the constructor, with no lock held.
    ~Asking() { --device_.asking_; }

   private:
    CudaBackend& device_;
  };
  std::atomic<int> asking_{0};
  std::atomic<bool> stopped_{false};
  std::atomic<bool> queries_slow_{false};

  std::mutex failure_mutex_;
  std::atomic<bool> failed_{false};
  Ref<Failure> failure_;
  std::vector<Ref<Kernel>> last_kernels_;  // of a failed device, from which nothing is unloaded any more
};

// The context of a device that is in use, or else of the first device. Throws DriverError.
CUcontext any_context();

}  // namespace anabranch::cuda
