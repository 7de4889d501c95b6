#pragma once

#include <cstddef>
#include <cstdint>

#include "anabranch/memory/layout.hpp"

namespace anabranch {

// An element of 16 bytes.
struct Wide {
  std::uint64_t low, high;
};

// A copy between two layouts of one shape whose adjacent elements lie along different axes, such as a transposition, in
// tiles: each reads and writes whole cache lines, which a walk in row-major order would do on one side only. The tiles
// are independent of each other.
class Tiling {
 public:
  // `tiles()` is 0 for a copy that is as well made in row-major order, or that is not of all elements of both sides.
  Tiling(const Elements& dst, const Elements& src, std::int64_t count) noexcept;
  std::int64_t tiles() const noexcept { return tiles_; }

  struct Axis {
    std::int64_t size;
    std::int64_t to;  // strides in bytes
    std::int64_t from;
  };
  int ndim() const noexcept { return ndim_; }
  // The last axis is the one along which the destination's elements are adjacent, or nearest, the one before it that of
  // the source.
  const Axis& axis(int d) const noexcept { return axes_[d]; }
  // Copies the tiles [begin, end).
  void copy(std::int64_t begin, std::int64_t end) const noexcept;

 private:
  // Sets the axes that both sides have, merged where both allow.
  void take_axes(const Layout& dst, const Layout& src) noexcept;
  // Moves the two last axes to their places. Returns false where they are one.
  bool order_axes() noexcept;
  template <class T>
  void copy_tile(std::byte* to, const std::byte* from, std::int64_t rows, std::int64_t columns) const noexcept;

  std::byte* to_;
  const std::byte* from_;
  std::int64_t itemsize_;
  Axis axes_[max_dimensions];
  int ndim_ = 0;
  std::int64_t side_ = 0;
  std::int64_t tiles_ = 0;
};

}  // namespace anabranch
