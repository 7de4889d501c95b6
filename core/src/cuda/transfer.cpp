#include "transfer.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "backend.hpp"
#include "convert_ptx.hpp"
#include "elements_ptx.hpp"
#include "run_ptx.hpp"

namespace anabranch::cuda {
namespace {

constexpr int block = 256;
constexpr std::int64_t most_blocks = 16384;
constexpr std::int64_t row_unit = 16;  // bytes that each thread of `copy_rows_16` moves at a time
constexpr std::size_t run_unit = 16;   // bytes that each thread of the run kernels moves

// A layout as the kernels in elements.cu expect it.
struct KernelLayout {
  std::int64_t ndim = 1;
  std::int64_t shape[max_dimensions] = {};
  std::int64_t strides[max_dimensions] = {};
};

// The axes of a `Tiling` as the kernels expect them.
struct KernelTiles {
  std::int64_t ndim = 2;
  std::int64_t size[max_dimensions] = {};
  std::int64_t to[max_dimensions] = {};
  std::int64_t from[max_dimensions] = {};
};

// As in elements.cu.
constexpr std::int64_t tile_side(std::int64_t itemsize) { return itemsize > 8 ? 32 : 64; }

// A value as the fill kernels expect it.
struct Wide {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

KernelLayout kernel_layout(const Layout& layout) {
  const Layout merged = layout.merged();
  KernelLayout result;
  result.ndim = merged.ndim;
  std::copy_n(merged.shape, merged.ndim, result.shape);
  std::copy_n(merged.strides, merged.ndim, result.strides);
  return result;
}

std::byte* find_run(const Elements& elements, std::int64_t count) {
  const Layout merged = elements.layout.merged();
  const std::int64_t inner = merged.shape[merged.ndim - 1];
  if (merged.strides[merged.ndim - 1] != merged.itemsize && count > 1) return nullptr;
  if (merged.ndim == 1) return elements.pointer + elements.offset * merged.strides[0];
  if (elements.offset % inner + count > inner) return nullptr;
  std::byte* pointer = elements.pointer;
  std::int64_t rest = elements.offset;
  for (int d = merged.ndim - 1; d >= 0; --d) {
    pointer += rest % merged.shape[d] * merged.strides[d];
    rest /= merged.shape[d];
  }
  return pointer;
}

// The address of the elements if they are adjacent; else null.
inline std::byte* run_of(const Elements& elements, std::int64_t count) {
  const Layout& layout = elements.layout;
  if (layout.ndim == 1 && layout.strides[0] == layout.itemsize) [[likely]]
    return elements.pointer + elements.offset * layout.itemsize;
  return find_run(elements, count);
}

// The largest power of two, up to the size of an element, that divides the address of every element.
std::int64_t alignment_of(const Elements& elements) {
  auto bits = reinterpret_cast<std::uintptr_t>(elements.pointer);
  for (int d = 0; d < elements.layout.ndim; ++d) bits |= static_cast<std::uintptr_t>(elements.layout.strides[d]);
  // Elements of 16 bytes are read as two halves.
  const std::int64_t wanted = std::min<std::int64_t>(elements.layout.itemsize, 8);
  return bits == 0 ? wanted : std::min(wanted, std::int64_t{1} << std::min(std::countr_zero(bits), 3));
}

// Whether the elements lie in rows, which all begin and end on multiples of `row_unit`.
bool in_rows(const Elements& elements, std::int64_t count) {
  const Layout merged = elements.layout.merged();
  const std::int64_t itemsize = merged.itemsize;
  const int last = merged.ndim - 1;
  if (itemsize >= row_unit || merged.strides[last] != itemsize) return false;
  auto bits = reinterpret_cast<std::uintptr_t>(elements.pointer);
  bits |= static_cast<std::uintptr_t>(merged.shape[last] * itemsize | elements.offset * itemsize | count * itemsize);
  for (int d = 0; d < last; ++d) bits |= static_cast<std::uintptr_t>(merged.strides[d]);
  return bits % row_unit == 0;
}

// Makes elements of `row_unit` bytes of those in a row.
void widen(KernelLayout& layout) {
  const auto last = static_cast<std::size_t>(layout.ndim - 1);
  layout.shape[last] = layout.shape[last] * layout.strides[last] / row_unit;
  layout.strides[last] = row_unit;
}

// The same memory as smaller elements, with one more dimension.
Elements split(const Elements& elements, std::int64_t itemsize) {
  Elements parts = elements;
  parts.layout = elements.layout.merged();
  const std::int64_t each = parts.layout.itemsize / itemsize;
  if (parts.layout.ndim == max_dimensions) {
    throw Error(ErrorKind::value,
                "an array with elements not aligned in memory has too many dimensions to be copied on a GPU");
  }
  parts.layout.shape[parts.layout.ndim] = each;
  parts.layout.strides[parts.layout.ndim++] = itemsize;
  parts.layout.itemsize = itemsize;
  parts.offset *= each;
  return parts;
}

CUDA_KERNEL_NODE_PARAMS elements_kernel(CUfunction function, std::int64_t count, void** parameters) {
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = function;
  kernel.gridDimX = static_cast<unsigned>(std::min((count + block - 1) / block, most_blocks));
  kernel.blockDimX = block;
  kernel.gridDimY = kernel.gridDimZ = kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.kernelParams = parameters;
  return kernel;
}

// A memset of at least this size slows down queries, see `CudaBackend::slow_queries`.
constexpr std::size_t large_memset = std::size_t{64} << 10;

// The members of `Primitives` for direct submission to a stream. Not virtual, so that it costs no more than the
// driver's call.
struct Now {
  CudaBackend& device;
  CUstream stream;
  const char* what;
  bool within = false;  // copies are within the device's own memory

  void copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
    if (within && device.transfer().copy_run(stream, to, from, bytes)) return;
    device.check(driver->cuMemcpyAsync(to, from, bytes, stream), what);
    if (within) device.slow_queries();
  }
  void set(CUdeviceptr to, unsigned value, unsigned itemsize, std::size_t count) {
    if (count * itemsize >= large_memset) {
      if (device.transfer().fill_run(stream, to, value, itemsize, count)) return;
      device.slow_queries();
    }
    switch (itemsize) {
      case 1:
        return device.check(driver->cuMemsetD8Async(to, static_cast<unsigned char>(value), count, stream), what);
      case 2:
        return device.check(driver->cuMemsetD16Async(to, static_cast<unsigned short>(value), count, stream), what);
      default:
        return device.check(driver->cuMemsetD32Async(to, value, count, stream), what);
    }
  }
  void launch(const CUDA_KERNEL_NODE_PARAMS& kernel, const LaunchAttributes&) {
    device.check(driver->cuLaunchKernel(kernel.func, kernel.gridDimX, 1, 1, kernel.blockDimX, 1, 1, 0, stream,
                                        kernel.kernelParams, nullptr),
                 what);
  }
};

}  // namespace

void Transfer::load() {
  std::call_once(loaded_, [this] {
    const ContextScope scope(device_.context());
    CUmodule module = nullptr;
    device_.check(driver->cuModuleLoadDataEx(&module, elements_ptx, 0, nullptr, nullptr), "loading the copy kernels");
    for (int i = 0; i < sizes; ++i) {
      const std::string size = std::to_string(1 << i);
      device_.check(driver->cuModuleGetFunction(&copy_[i], module, ("copy_" + size).c_str()), "finding a copy kernel");
      device_.check(driver->cuModuleGetFunction(&fill_[i], module, ("fill_" + size).c_str()), "finding a fill kernel");
      device_.check(driver->cuModuleGetFunction(&tiles_[i], module, ("tiles_" + size).c_str()),
                    "finding a copy kernel");
    }
    device_.check(driver->cuModuleGetFunction(&copy_rows_, module, "copy_rows_16"), "finding a copy kernel");
  });
}

void Transfer::load_conversion() {
  std::call_once(conversion_loaded_, [this] {
    const ContextScope scope(device_.context());
    CUmodule module = nullptr;
    device_.check(driver->cuModuleLoadDataEx(&module, convert_ptx, 0, nullptr, nullptr),
                  "loading the conversion kernel");
    device_.check(driver->cuModuleGetFunction(&convert_, module, "convert"), "finding the conversion kernel");
  });
}

void Transfer::open() {
  CUmodule module = nullptr;
  device_.check(driver->cuModuleLoadDataEx(&module, run_ptx, 0, nullptr, nullptr), "loading the copy kernels");
  for (const auto& [function, name] : {std::pair(&copy_run_, "copy_run"), std::pair(&fill_run_, "fill_run")}) {
    device_.check(driver->cuModuleGetFunction(function, module, name), "finding a copy kernel");
    // A driver that loads lazily loads the code now.
    int threads = 0;
    device_.check(driver->cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, *function),
                  "loading a copy kernel");
  }
}

void Transfer::launch_run(CUstream stream, CUfunction function, std::size_t bytes, void** parameters) {
  const std::size_t threads = bytes / run_unit + bytes % run_unit;
  const auto blocks = static_cast<unsigned>((threads + block - 1) / block);
  device_.check(driver->cuLaunchKernel(function, blocks, 1, 1, block, 1, 1, 0, stream, parameters, nullptr),
                "copying or filling");
}

bool Transfer::copy_run(CUstream stream, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  if (((to | from) & (run_unit - 1)) != 0) return false;
  void* parameters[] = {&to, &from, &bytes};
  launch_run(stream, copy_run_, bytes, parameters);
  return true;
}

bool Transfer::fill_run(CUstream stream, CUdeviceptr to, unsigned value, unsigned itemsize, std::size_t count) {
  if ((to & (run_unit - 1)) != 0) return false;
  if (itemsize < 2) value = (value & 0xFF) * 0x0101U;
  if (itemsize < 4) value = (value & 0xFFFF) * 0x0001'0001U;
  const std::uint32_t pattern[run_unit / sizeof(std::uint32_t)] = {value, value, value, value};
  std::size_t bytes = count * itemsize;
  void* parameters[] = {&to, const_cast<std::uint32_t*>(pattern), &bytes};
  launch_run(stream, fill_run_, bytes, parameters);
  return true;
}

template <class Sink>
void Transfer::plan_copy(Sink& sink, const Elements& dst, const Elements& src, std::int64_t count) {
  if (count == 0) return;
  if (converts(dst, src)) [[unlikely]]
    return plan_conversion(sink, dst, src, count);
  std::byte* to = run_of(dst, count);
  std::byte* from = run_of(src, count);
  if (to && from) {
    const auto bytes = static_cast<std::size_t>(count * dst.layout.itemsize);
    return sink.copy(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), bytes);
  }
  plan_gather(sink, dst, src, count);
}

template <class Sink>
[[gnu::noinline]] void Transfer::plan_gather(Sink& sink, const Elements& dst, const Elements& src, std::int64_t count) {
  const std::int64_t unit = std::min(alignment_of(dst), alignment_of(src));
  const std::int64_t itemsize = dst.layout.itemsize;
  if (unit < std::min<std::int64_t>(itemsize, 8)) {
    return plan_copy(sink, split(dst, unit), split(src, unit), count * (itemsize / unit));
  }
  load();
  const Tiling tiling(dst, src, count);
  if (tiling.tiles() > 0) return plan_tiles(sink, dst, src, tiling);
  const bool rows = in_rows(dst, count) && in_rows(src, count);
  const std::int64_t each = rows ? row_unit / itemsize : 1;
  CUdeviceptr target = reinterpret_cast<CUdeviceptr>(dst.pointer);
  CUdeviceptr source = reinterpret_cast<CUdeviceptr>(src.pointer);
  count /= each;
  std::int64_t dst_first = dst.offset / each;
  std::int64_t src_first = src.offset / each;
  KernelLayout target_layout = kernel_layout(dst.layout);
  KernelLayout source_layout = kernel_layout(src.layout);
  if (rows) {
    widen(target_layout);
    widen(source_layout);
  }
  void* parameters[] = {&target, &source, &count, &dst_first, &src_first, &target_layout, &source_layout};
  const CUfunction function = rows ? copy_rows_ : copy_[std::countr_zero(static_cast<std::uint64_t>(itemsize))];
  sink.launch(elements_kernel(function, count, parameters), {});
}

template <class Sink>
void Transfer::plan_tiles(Sink& sink, const Elements& dst, const Elements& src, const Tiling& tiling) {
  KernelTiles axes;
  axes.ndim = tiling.ndim();
  std::int64_t tiles = 1;
  const std::int64_t side = tile_side(dst.layout.itemsize);
  for (int d = 0; d < tiling.ndim(); ++d) {
    const Tiling::Axis& axis = tiling.axis(tiling.ndim() - 1 - d);
    axes.size[d] = axis.size;
    axes.to[d] = axis.to;
    axes.from[d] = axis.from;
    tiles *= d < 2 ? (axis.size + side - 1) / side : axis.size;
  }
  CUdeviceptr target = reinterpret_cast<CUdeviceptr>(dst.pointer);
  CUdeviceptr source = reinterpret_cast<CUdeviceptr>(src.pointer);
  void* parameters[] = {&target, &source, &tiles, &axes};
  const CUfunction function = tiles_[std::countr_zero(static_cast<std::uint64_t>(dst.layout.itemsize))];
  // A block for each tile.
  sink.launch(elements_kernel(function, tiles * block, parameters), {});
}

template <class Sink>
[[gnu::noinline]] void Transfer::plan_conversion(Sink& sink, const Elements& dst, const Elements& src,
                                                 std::int64_t count) {
  load_conversion();
  CUdeviceptr target = reinterpret_cast<CUdeviceptr>(dst.pointer);
  CUdeviceptr source = reinterpret_cast<CUdeviceptr>(src.pointer);
  std::int64_t dst_first = dst.offset;
  std::int64_t src_first = src.offset;
  KernelLayout target_layout = kernel_layout(dst.layout);
  KernelLayout source_layout = kernel_layout(src.layout);
  int target_type = static_cast<int>(dst.type);
  int source_type = static_cast<int>(src.type);
  void* parameters[] = {&target,        &source,        &count,       &dst_first,  &src_first,
                        &target_layout, &source_layout, &target_type, &source_type};
  sink.launch(elements_kernel(convert_, count, parameters), {});
}

template <class Sink>
void Transfer::plan_fill(Sink& sink, const Elements& dst, const void* value, std::int64_t count) {
  if (count == 0) return;
  const std::int64_t itemsize = dst.layout.itemsize;
  const std::int64_t unit = alignment_of(dst);
  if (unit < std::min<std::int64_t>(itemsize, 8)) {
    // Fills part by part: the same part of all elements at a time.
    for (std::int64_t at = 0; at < itemsize; at += unit) {
      Elements parts = dst;
      parts.pointer += at;
      parts.layout.itemsize = unit;
      plan_fill(sink, parts, static_cast<const std::byte*>(value) + at, count);
    }
    return;
  }
  Wide wide;
  std::memcpy(&wide, value, static_cast<std::size_t>(itemsize));
  if (std::byte* to = run_of(dst, count)) {
    const auto target = reinterpret_cast<CUdeviceptr>(to);
    const auto number = static_cast<std::size_t>(count);
    const auto half = static_cast<std::uint32_t>(wide.low);
    const auto* bytes = reinterpret_cast<const unsigned char*>(&wide);
    if (std::all_of(bytes + 1, bytes + itemsize, [bytes](unsigned char byte) { return byte == bytes[0]; })) {
      return sink.set(target, bytes[0], 1, number * static_cast<std::size_t>(itemsize));
    }
    if (itemsize <= 4) return sink.set(target, half, static_cast<unsigned>(itemsize), number);
    const bool repeats = wide.low >> 32 == half && (itemsize == 8 || wide.high == wide.low);
    if (repeats) return sink.set(target, half, 4, number * static_cast<std::size_t>(itemsize / 4));
  }
  load();
  CUdeviceptr target = reinterpret_cast<CUdeviceptr>(dst.pointer);
  std::int64_t first = dst.offset;
  KernelLayout layout = kernel_layout(dst.layout);
  void* parameters[] = {&target, &wide, &count, &first, &layout};
  const CUfunction function = fill_[std::countr_zero(static_cast<std::uint64_t>(itemsize))];
  sink.launch(elements_kernel(function, count, parameters), {});
}

void Transfer::copy(CUstream stream, const Elements& dst, const Elements& src, std::int64_t count) {
  Now now{device_, stream, "copying", dst.home == &device_ && src.home == &device_};
  plan_copy(now, dst, src, count);
}

void Transfer::fill(CUstream stream, const Elements& dst, const void* value, std::int64_t count) {
  Now now{device_, stream, "filling"};
  plan_fill(now, dst, value, count);
}

void Transfer::copy(Primitives& nodes, const Elements& dst, const Elements& src, std::int64_t count) {
  plan_copy(nodes, dst, src, count);
}

void Transfer::fill(Primitives& nodes, const Elements& dst, const void* value, std::int64_t count) {
  plan_fill(nodes, dst, value, count);
}

}  // namespace anabranch::cuda
