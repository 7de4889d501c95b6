#pragma once

#include <cstddef>
#include <cstdint>

namespace anabranch {

inline constexpr int max_dimensions = 16;

// How the elements of an array lie in memory: `shape` in elements, `strides` in bytes, from a pointer to the first
// element. Strides may be negative or zero.
struct Layout {
  int ndim = 0;
  std::int64_t itemsize = 1;
  // Only the first `ndim` of each mean something, and only those are copied.
  std::int64_t shape[max_dimensions];
  std::int64_t strides[max_dimensions];

  // Not `= default`, so that the rest of the arrays stays as it is.
  Layout() noexcept { shape[0] = strides[0] = 0; }
  Layout(const Layout& other) noexcept { take(other); }
  Layout& operator=(const Layout& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }

  // The number of elements; 1 for no dimension, 0 if any dimension is 0.
  std::int64_t size() const noexcept {
    std::int64_t size = 1;
    for (int d = 0; d < ndim; ++d) size *= shape[d];
    return size;
  }
  // Whether the elements lie one after the other in row-major order.
  bool contiguous() const noexcept;
  // The bytes that the elements touch, as offsets [low, high) from the first element; {0, 0} for no element.
  void extent(std::int64_t& low, std::int64_t& high) const noexcept {
    low = high = 0;
    if (size() == 0) return;
    for (int d = 0; d < ndim; ++d) {
      const std::int64_t reach = (shape[d] - 1) * strides[d];
      (reach < 0 ? low : high) += reach;
    }
    high += itemsize;
  }
  // The same elements in the same row-major order with as few dimensions as possible; at least one.
  Layout merged() const noexcept;

 private:
  // Most have one dimension. One loop for all would become two calls of memcpy, which cost more than all the rest that
  // a copy does before it comes to the driver.
  void take(const Layout& other) noexcept {
    ndim = other.ndim;
    itemsize = other.itemsize;
    shape[0] = other.shape[0];
    strides[0] = other.strides[0];
    for (int d = 1; d < ndim; ++d) {
      shape[d] = other.shape[d];
      strides[d] = other.strides[d];
    }
  }
};

// Sets row-major strides. Throws Error(value) for a negative dimension, more than `max_dimensions` of them, or a size
// in bytes over 2^63 - 1.
Layout row_major(int ndim, const std::int64_t* shape, std::int64_t itemsize);

// Whether elements of two arrays share a byte of memory. Exact for views made by slices, of whatever step; where
// finding it out would take too long, true.
bool overlap(const std::byte* a, const Layout& a_layout, const std::byte* b, const Layout& b_layout) noexcept;

class Backend;

// A range of the row-major elements of an array.
struct Elements {
  std::byte* pointer = nullptr;
  Layout layout;
  std::int64_t offset = 0;
  Backend* home = nullptr;  // whose memory it is; null: it does not matter
};

// Copies `count` elements, on this thread, now. The two must not overlap.
void copy_elements(const Elements& dst, const Elements& src, std::int64_t count) noexcept;
// Sets `count` elements to the `itemsize` bytes at `value`, on this thread, now.
void fill_elements(const Elements& dst, const void* value, std::int64_t count) noexcept;

}  // namespace anabranch
