// The verbs of "work" in `Backend`.
#include <array>
#include <cstring>
#include <vector>

#include "backend.hpp"
#include "checked.hpp"

namespace anabranch::cuda {
namespace {

template <class Grid>
Point launch_on(CudaStream& stream, CudaBackend& device, Kernel& kernel, const Grid& grid,
                std::span<const std::uint64_t> arguments) {
  CudaKernel& own = kernel_of(device, kernel);
  return stream.enqueue(
      [&](CUstream native) {
        own.launch(native, grid, arguments);
        stream.note_kernel(own);
      },
      [&] {
        std::vector<std::uint64_t> copied(arguments.begin(), arguments.end());
        return [&stream, kept = Ref<CudaKernel>::share(&own), grid, copied = std::move(copied)](CUstream native) {
          kept->launch(native, grid, copied);
          stream.note_kernel(*kept);
        };
      });
}

}  // namespace

Point CudaBackend::copy(Stream& stream, const Elements& dst, const Elements& src, std::int64_t count) {
  reach(dst);
  reach(src);
  return as_own(stream).enqueue(
      [&](CUstream native) { transfer_.copy(native, dst, src, count); },
      [&] { return [this, dst, src, count](CUstream native) { transfer_.copy(native, dst, src, count); }; });
}

Point CudaBackend::fill(Stream& stream, const Elements& dst, const void* value, std::int64_t count) {
  return as_own(stream).enqueue([&](CUstream native) { transfer_.fill(native, dst, value, count); },
                                [&] {
                                  std::array<std::byte, 16> item{};
                                  std::memcpy(item.data(), value, static_cast<std::size_t>(dst.layout.itemsize));
                                  return [this, dst, item, count](CUstream native) {
                                    transfer_.fill(native, dst, item.data(), count);
                                  };
                                });
}

Point CudaBackend::launch(Stream& stream, Kernel& kernel, const LaunchShape& shape,
                          std::span<const std::uint64_t> arguments) {
  if (kernel.may_fail()) [[unlikely]]
    return launch_checked(static_cast<CudaStream&>(stream), kernel_of(*this, kernel), shape, arguments);
  return launch_on(static_cast<CudaStream&>(stream), *this, kernel, shape, arguments);
}

Point CudaBackend::launch_grid(Stream& stream, Kernel& kernel, const LaunchGrid& grid,
                               std::span<const std::uint64_t> arguments) {
  return launch_on(static_cast<CudaStream&>(stream), *this, kernel, grid, arguments);
}

Point CudaBackend::external(Stream& stream, Ref<ExternalWork> work) {
  return as_own(stream).enqueue(
      [&](CUstream native) { work->enqueue(reinterpret_cast<std::uintptr_t>(native)); },
      [&] { return [work](CUstream native) { work->enqueue(reinterpret_cast<std::uintptr_t>(native)); }; });
}

Point CudaBackend::suspend(Stream& stream, Ref<HostOperation> pending) {
  return as_own(stream).suspend(std::move(pending));
}

}  // namespace anabranch::cuda
