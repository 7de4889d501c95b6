#include "anabranch/memory/layout.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "anabranch/error.hpp"
#include "tiling.hpp"
#include "walk.hpp"

namespace anabranch {
namespace {

template <class T>
void copy_run(std::byte* dst, std::int64_t dst_stride, const std::byte* src, std::int64_t src_stride,
              std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(dst + i * dst_stride, src + i * src_stride, sizeof(T));
}

void copy_run(std::int64_t itemsize, std::byte* dst, std::int64_t dst_stride, const std::byte* src,
              std::int64_t src_stride, std::int64_t count) {
  if (dst_stride == itemsize && src_stride == itemsize) {
    std::memcpy(dst, src, static_cast<std::size_t>(count * itemsize));
    return;
  }
  switch (itemsize) {
    case 1:
      return copy_run<std::uint8_t>(dst, dst_stride, src, src_stride, count);
    case 2:
      return copy_run<std::uint16_t>(dst, dst_stride, src, src_stride, count);
    case 4:
      return copy_run<std::uint32_t>(dst, dst_stride, src, src_stride, count);
    case 8:
      return copy_run<std::uint64_t>(dst, dst_stride, src, src_stride, count);
    default:
      return copy_run<Wide>(dst, dst_stride, src, src_stride, count);
  }
}

template <class T>
void fill_run(std::byte* dst, std::int64_t stride, const void* value, std::int64_t count) {
  T item;
  std::memcpy(&item, value, sizeof(T));
  if (stride == sizeof(T)) {  // a constant stride, which compiles to wide stores
    for (std::int64_t i = 0; i < count; ++i) std::memcpy(dst + i * std::int64_t{sizeof(T)}, &item, sizeof(T));
  } else {
    for (std::int64_t i = 0; i < count; ++i) std::memcpy(dst + i * stride, &item, sizeof(T));
  }
}

void fill_run(std::int64_t itemsize, std::byte* dst, std::int64_t stride, const void* value, std::int64_t count) {
  switch (itemsize) {
    case 1:
      return fill_run<std::uint8_t>(dst, stride, value, count);
    case 2:
      return fill_run<std::uint16_t>(dst, stride, value, count);
    case 4:
      return fill_run<std::uint32_t>(dst, stride, value, count);
    case 8:
      return fill_run<std::uint64_t>(dst, stride, value, count);
    default:
      return fill_run<Wide>(dst, stride, value, count);
  }
}

}  // namespace

bool Layout::contiguous() const noexcept {
  if (size() == 0) return true;
  std::int64_t expected = itemsize;
  for (int d = ndim - 1; d >= 0; --d) {
    if (shape[d] != 1 && strides[d] != expected) return false;
    expected *= shape[d];
  }
  return true;
}

Layout Layout::merged() const noexcept {
  Layout merged;
  merged.itemsize = itemsize;
  for (int d = 0; d < ndim; ++d) {
    if (shape[d] == 1) continue;
    const int last = merged.ndim - 1;
    if (last >= 0 && merged.strides[last] == shape[d] * strides[d]) {
      merged.shape[last] *= shape[d];
      merged.strides[last] = strides[d];
    } else {
      merged.shape[merged.ndim] = shape[d];
      merged.strides[merged.ndim] = strides[d];
      ++merged.ndim;
    }
  }
  if (merged.ndim == 0) {
    merged.ndim = 1;
    merged.shape[0] = 1;
    merged.strides[0] = itemsize;
  }
  return merged;
}

Layout row_major(int ndim, const std::int64_t* shape, std::int64_t itemsize) {
  if (ndim > max_dimensions) {
    throw Error(ErrorKind::value,
                "an array has at most " + std::to_string(max_dimensions) + " dimensions, not " + std::to_string(ndim));
  }
  Layout layout;
  layout.ndim = ndim;
  layout.itemsize = itemsize;
  std::int64_t stride = itemsize;
  bool overflow = false;
  for (int d = ndim - 1; d >= 0; --d) {
    if (shape[d] < 0) {
      throw Error(ErrorKind::value, "negative size " + std::to_string(shape[d]) + " in dimension " + std::to_string(d));
    }
    layout.shape[d] = shape[d];
    layout.strides[d] = stride;
    overflow |= __builtin_mul_overflow(stride, std::max<std::int64_t>(shape[d], 1), &stride);
  }
  if (overflow) {
    std::string sizes;
    for (int d = 0; d < ndim; ++d) sizes += (d ? ", " : "") + std::to_string(shape[d]);
    throw Error(ErrorKind::value,
                "an array of shape (" + sizes + (ndim == 1 ? ",)" : ")") + " has over 2**63 - 1 bytes");
  }
  return layout;
}

void copy_elements(const Elements& dst, const Elements& src, std::int64_t count) noexcept {
  if (converts(dst, src)) return convert_elements(dst, src, count);
  const Tiling tiling(dst, src, count);
  if (tiling.tiles() > 0) return tiling.copy(0, tiling.tiles());
  const std::int64_t itemsize = dst.layout.itemsize;
  walk_together(dst, src, count,
                [itemsize](std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride,
                           std::int64_t run) { copy_run(itemsize, to, to_stride, from, from_stride, run); });
}

void fill_elements(const Elements& dst, const void* value, std::int64_t count) noexcept {
  if (count == 0) return;
  Walk to(dst);
  while (true) {
    const std::int64_t run = std::min(to.run(), count);
    fill_run(dst.layout.itemsize, to.pointer(), to.stride(), value, run);
    count -= run;
    if (count == 0) return;
    to.advance(run);
  }
}

}  // namespace anabranch
