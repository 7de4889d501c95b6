// The verbs of "work" in `Backend`.
#include "backend.hpp"
#include "task.hpp"

namespace anabranch::cpu {

Point CpuBackend::copy(Stream& stream, const Elements& dst, const Elements& src, std::int64_t count) {
  return as_cpu(stream).push(make_copy_task(dst, src, count));
}

Point CpuBackend::fill(Stream& stream, const Elements& dst, const void* value, std::int64_t count) {
  return as_cpu(stream).push(make_fill_task(dst, value, count));
}

Point CpuBackend::launch(Stream& stream, Kernel& kernel, const LaunchShape& shape,
                         std::span<const std::uint64_t> arguments) {
  return as_cpu(stream).push(make_kernel_task(kernel, shape, arguments), &kernel);
}

Point CpuBackend::launch_grid(Stream&, Kernel& kernel, const LaunchGrid&, std::span<const std::uint64_t>) {
  refuse_blocks(kernel);
}

void CpuBackend::refuse_blocks(const Kernel& kernel) const {
  throw Error(ErrorKind::device,
              "kernel '" + kernel.name + "' is launched with blocks, which " + capabilities_.name + " does not have");
}

Point CpuBackend::suspend(Stream& stream, Ref<HostOperation> pending) {
  return as_cpu(stream).push(std::make_unique<PendingTask>(std::move(pending)));
}

}  // namespace anabranch::cpu
