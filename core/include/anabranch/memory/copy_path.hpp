#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "anabranch/backend.hpp"
#include "anabranch/memory/layout.hpp"
#include "anabranch/memory/memory.hpp"

namespace anabranch {

// The path of a copy.
enum class CopyPath : std::uint8_t {
  none,       // source and destination are identical
  direct,     // one operation of the stream
  temporary,  // they overlap: through temporary memory of the stream's device
  host,       // between a GPU and unpinned host memory: the host copies when the stream reaches the operation
  beside,     // between a GPU and pinned memory, for a stream of a CPU: by a helper stream of the GPU
  packed,     // between two GPUs with a strided side: gathered, sent as contiguous bytes, scattered
};

// One side of a copy: an array, and the copy's first element in it.
struct CopySide {
  const Backend* device;
  MemoryKind kind;
  const std::byte* data;  // the array's first element
  const Layout* layout;
  bool contiguous;
  std::int64_t offset;  // in elements
};

// Whether two arrays share a byte.
[[gnu::always_inline]] inline bool overlap(const CopySide& a, const CopySide& b) noexcept {
  if (!a.contiguous || !b.contiguous) return overlap(a.data, *a.layout, b.data, *b.layout);
  return a.data < b.data + b.layout->size() * b.layout->itemsize &&
         b.data < a.data + a.layout->size() * a.layout->itemsize;
}

// Whether two layouts with the same itemsize are equal.
inline bool alike(const Layout& a, const Layout& b) noexcept {
  return a.ndim == b.ndim && std::equal(a.shape, a.shape + a.ndim, b.shape) &&
         std::equal(a.strides, a.strides + a.ndim, b.strides);
}

// The path of a copy of at least one element on a stream of `device`, which is the device of one side. Both sides have
// the same itemsize.
[[gnu::always_inline]] inline CopyPath copy_path(const CopySide& dst, const CopySide& src,
                                                 const Backend& device) noexcept {
  if (overlap(dst, src)) [[unlikely]] {
    const bool same = dst.data == src.data && dst.offset == src.offset && alike(*dst.layout, *src.layout);
    return same ? CopyPath::none : CopyPath::temporary;
  }
  if (dst.device == src.device) return CopyPath::direct;
  const bool from_host = src.device->capabilities().host_memory;
  const bool to_host = dst.device->capabilities().host_memory;
  if (from_host && to_host) return CopyPath::direct;
  if (from_host || to_host) {
    if ((from_host ? src : dst).kind != MemoryKind::pinned) return CopyPath::host;
    return device.capabilities().host_memory ? CopyPath::beside : CopyPath::direct;
  }
  return dst.contiguous && src.contiguous ? CopyPath::direct : CopyPath::packed;
}

}  // namespace anabranch
