#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "anabranch/backend.hpp"
#include "anabranch/layout.hpp"
#include "anabranch/memory.hpp"

namespace anabranch {

// How elements travel from one array to another.
enum class CopyPath : std::uint8_t {
  none,       // they are there already: onto itself
  direct,     // one operation of the stream
  temporary,  // the two overlap: through memory of the stream's device
  host,       // between a GPU and host memory that is not pinned: the host copies, once the stream has come to it
  beside,     // between a GPU and pinned memory on a CPU's stream, which cannot: a stream of the GPU does it
  packed,  // between two GPUs with a strided side: gathered on the one, sent as a run of bytes, scattered on the other
};

// One side of a copy: an array, and where in it the copy begins.
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

// Whether two layouts of one itemsize are the same.
inline bool alike(const Layout& a, const Layout& b) noexcept {
  return a.ndim == b.ndim && std::equal(a.shape, a.shape + a.ndim, b.shape) &&
         std::equal(a.strides, a.strides + a.ndim, b.strides);
}

// The path of a copy of at least one element on a stream of `device`, which is that of either side. Both sides have
// elements of one size.
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
