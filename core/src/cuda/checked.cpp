#include "checked.hpp"

#include <mutex>
#include <utility>
#include <vector>

#include "anabranch/kernel/fault.hpp"
#include "anabranch/stream/host.hpp"
#include "backend.hpp"

namespace anabranch::cuda {
namespace {

// The host's copies of fault records, in pinned memory, kept for later launches.
class HostRecords {
 public:
  FaultRecord* take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      auto* first = static_cast<FaultRecord*>(pinned_source().allocate(records_at_once * sizeof(FaultRecord)));
      if (!first) throw Error(ErrorKind::memory, "no pinned memory is left for a launch of a kernel that may fail");
      for (std::size_t i = 0; i < records_at_once; ++i) free_.push_back(first + i);
    }
    FaultRecord* record = free_.back();
    free_.pop_back();
    return record;
  }
  void give(FaultRecord* record) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back(record);
  }
  static HostRecords& instance() {
    static auto* records = new HostRecords;
    return *records;
  }

 private:
  static constexpr std::size_t records_at_once = 64;

  std::mutex mutex_;
  std::vector<FaultRecord*> free_;
};

// A launch and, once the stream reaches it, the check of its record.
class CheckedLaunch final : public HostOperation {
 public:
  CheckedLaunch(CudaKernel& kernel, const LaunchShape& shape, std::span<const std::uint64_t> arguments)
      : kernel_(Ref<CudaKernel>::share(&kernel)),
        shape_(shape),
        arguments_(arguments.begin(), arguments.end()),
        told_(HostRecords::instance().take()) {
    *told_ = {};
  }
  // Runs on the thread that drops the operation, usually the poller. Takes the records' mutex, a leaf, and calls no
  // driver.
  ~CheckedLaunch() override { HostRecords::instance().give(told_); }

  // Requires that the device's context is current.
  void submit(CudaStream& stream, CUstream native) {
    CudaBackend& device = kernel_->device();
    const CUdeviceptr record = device.memory().allocate_on(native, sizeof(FaultRecord));
    try {
      device.check(driver->cuMemsetD8Async(record, 0, sizeof(FaultRecord), native), "clearing a record of errors");
      kernel_->launch(native, shape_, arguments_, record);
      device.check(driver->cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(told_), record, sizeof(FaultRecord), native),
                   "copying a record of errors");
    } catch (...) {
      device.memory().free_on(native, record);
      throw;
    }
    device.memory().free_on(native, record);
    stream.note_kernel(*kernel_);
  }

  void start() noexcept override {
    if (told_->not_position == 0) return complete();
    Fault fault;
    fault.where = fault.what = static_cast<std::int32_t>(told_->place);
    fault.axis = static_cast<std::int32_t>(told_->axis);
    fault.index = told_->index;
    fault.size = told_->size;
    complete(kernel_failure(*kernel_, shape_, arguments_, static_cast<std::int64_t>(~told_->not_position), fault));
  }

 private:
  const Ref<CudaKernel> kernel_;
  const LaunchShape shape_;
  const std::vector<std::uint64_t> arguments_;
  FaultRecord* const told_;
};

}  // namespace

Point launch_checked(CudaStream& stream, CudaKernel& kernel, const LaunchShape& shape,
                     std::span<const std::uint64_t> arguments) {
  const auto launch = make_ref<CheckedLaunch>(kernel, shape, arguments);
  stream.enqueue([&](CUstream native) { launch->submit(stream, native); },
                 [&] { return [&stream, launch](CUstream native) { launch->submit(stream, native); }; });
  return stream.suspend(launch);
}

}  // namespace anabranch::cuda
