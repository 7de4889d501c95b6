#pragma once

#include <cstddef>
#include <cstdint>

namespace anabranch {

inline constexpr int max_dimensions = 16;

// The placement of an array's elements in memory: `shape` in elements, `strides` in bytes, from a pointer to the first
// element. Strides may be negative or zero.
struct Layout {
  int ndim = 0;
  std::int64_t itemsize = 1;
  // Only the first `ndim` entries of each are meaningful, and only those are copied.
  std::int64_t shape[max_dimensions];
  std::int64_t strides[max_dimensions];

  // Not `= default`, which would write all of both arrays.
  Layout() noexcept { shape[0] = strides[0] = 0; }
  Layout(const Layout& other) noexcept { take(other); }
  Layout& operator=(const Layout& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }

  // The number of elements; 1 for zero dimensions, 0 if any dimension is 0.
  std::int64_t size() const noexcept {
    std::int64_t size = 1;
    for (int d = 0; d < ndim; ++d) size *= shape[d];
    return size;
  }
  // Whether the elements are adjacent, in row-major order.
  bool contiguous() const noexcept;
  // The bytes that the elements occupy, as offsets [low, high) from the first element; {0, 0} if there are no elements.
  void extent(std::int64_t& low, std::int64_t& high) const noexcept {
    low = high = 0;
    if (size() == 0) return;
    for (int d = 0; d < ndim; ++d) {
      const std::int64_t reach = (shape[d] - 1) * strides[d];
      (reach < 0 ? low : high) += reach;
    }
    high += itemsize;
  }
  // The same elements in the same row-major order with as few dimensions as possible, but at least one.
  Layout merged() const noexcept;

 private:
  // Most arrays have one dimension. A loop over all dimensions would compile to two calls of memcpy, which cost more
  // than everything else in a copy before its driver call.
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

// Sets row-major strides. Throws Error(value) for a negative dimension, more than `max_dimensions` dimensions, or a
// size over 2^63 - 1 bytes.
Layout row_major(int ndim, const std::int64_t* shape, std::int64_t itemsize);

// Whether elements of two arrays share a byte. Exact for views made by slicing, with any step; true if the exact answer
// would take too long to compute.
bool overlap(const std::byte* a, const Layout& a_layout, const std::byte* b, const Layout& b_layout) noexcept;

class Backend;

// The type of elements, for copies that convert. After `raw`, in the order of the dtypes that arrays hold.
enum class ElementType : std::uint8_t {
  raw,  // any type: bytes are copied
  boolean,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  float32,
  float64,
  complex64,
  complex128,
};

// A range of the row-major elements of an array.
struct Elements {
  std::byte* pointer = nullptr;
  Layout layout;
  std::int64_t offset = 0;
  Backend* home = nullptr;  // the owner of the memory; null: unknown, because it does not matter
  // A copy between two types converts; no side of it is raw then, and a complex one becomes a complex one or booleans.
  ElementType type = ElementType::raw;
};

inline bool converts(const Elements& dst, const Elements& src) noexcept { return dst.type != src.type; }

// Converts `count` elements on the calling thread. The two must not overlap.
void convert_elements(const Elements& dst, const Elements& src, std::int64_t count) noexcept;

// Copies `count` elements on the calling thread, and converts them if the types differ. The two must not overlap.
void copy_elements(const Elements& dst, const Elements& src, std::int64_t count) noexcept;
// Sets `count` elements to the `itemsize` bytes at `value`, on the calling thread.
void fill_elements(const Elements& dst, const void* value, std::int64_t count) noexcept;

}  // namespace anabranch
