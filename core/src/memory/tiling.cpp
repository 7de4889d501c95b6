#include "tiling.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace anabranch {
namespace {

// A tile's rows are as long as this on both sides, which is several cache lines, unless it has too many elements for
// the nearest cache.
constexpr std::int64_t row_bytes = 256;
constexpr std::int64_t longest_side = 64;
constexpr std::int64_t shortest_side = 16;

// Smaller tiles than this are not worth finding their places.
constexpr std::int64_t fewest_elements = 64;

// An array of adjacent elements comes as one dimension, whatever its shape.
bool adjacent(const Layout& layout) noexcept { return layout.ndim == 1 && layout.strides[0] == layout.itemsize; }

// Adjacent elements in the shape of another array.
Layout in_shape(const Layout& like) noexcept {
  Layout layout = like;
  std::int64_t stride = like.itemsize;
  for (int d = like.ndim - 1; d >= 0; --d) {
    layout.strides[d] = stride;
    stride *= like.shape[d];
  }
  return layout;
}

}  // namespace

Tiling::Tiling(const Elements& dst, const Elements& src, std::int64_t count) noexcept
    : to_(dst.pointer), from_(src.pointer), itemsize_(dst.layout.itemsize) {
  if ((dst.layout.ndim < 2 && src.layout.ndim < 2) || dst.offset != 0 || src.offset != 0) return;
  if (count != dst.layout.size() || count != src.layout.size()) return;
  if (dst.layout.ndim == src.layout.ndim) {
    if (!std::equal(dst.layout.shape, dst.layout.shape + dst.layout.ndim, src.layout.shape)) return;
    take_axes(dst.layout, src.layout);
  } else if (adjacent(dst.layout)) {
    take_axes(in_shape(src.layout), src.layout);
  } else if (adjacent(src.layout)) {
    take_axes(dst.layout, in_shape(dst.layout));
  } else {
    return;
  }
  if (!order_axes()) return;
  side_ = std::clamp(row_bytes / itemsize_, shortest_side, longest_side);
  const std::int64_t rows = axes_[ndim_ - 2].size;
  const std::int64_t columns = axes_[ndim_ - 1].size;
  if (std::min(rows, side_) * std::min(columns, side_) < fewest_elements) return;
  tiles_ = (rows + side_ - 1) / side_ * ((columns + side_ - 1) / side_);
  for (int d = 0; d < ndim_ - 2; ++d) tiles_ *= axes_[d].size;
}

bool Tiling::order_axes() noexcept {
  const auto nearest = [this](std::int64_t Axis::* stride) {
    int found = ndim_ - 1;
    for (int d = ndim_ - 2; d >= 0; --d) {
      const std::int64_t here = std::abs(axes_[d].*stride);
      const std::int64_t best = std::abs(axes_[found].*stride);
      if (here != 0 && (here < best || best == 0)) found = d;
    }
    return found;
  };
  const int of_dst = nearest(&Axis::to);
  const int of_src = nearest(&Axis::from);
  if (ndim_ < 2 || of_dst == of_src) return false;
  std::swap(axes_[of_dst], axes_[ndim_ - 1]);
  std::swap(axes_[of_src == ndim_ - 1 ? of_dst : of_src], axes_[ndim_ - 2]);
  return true;
}

void Tiling::take_axes(const Layout& dst, const Layout& src) noexcept {
  for (int d = 0; d < dst.ndim; ++d) {
    const Axis axis{dst.shape[d], dst.strides[d], src.strides[d]};
    if (axis.size == 1) continue;
    Axis* const last = ndim_ == 0 ? nullptr : &axes_[ndim_ - 1];
    if (last && last->to == axis.size * axis.to && last->from == axis.size * axis.from) {
      *last = {last->size * axis.size, axis.to, axis.from};
    } else {
      axes_[ndim_++] = axis;
    }
  }
}

// Through a buffer: rows of one side that are a power of two apart would push each other out of the cache.
template <class T>
void Tiling::copy_tile(std::byte* to, const std::byte* from, std::int64_t rows, std::int64_t columns) const noexcept {
  T buffer[longest_side * longest_side];
  const Axis& along_src = axes_[ndim_ - 2];
  const Axis& along_dst = axes_[ndim_ - 1];
  for (std::int64_t column = 0; column < columns; ++column) {
    const std::byte* const line = from + column * along_dst.from;
    T* const place = buffer + column;
    if (along_src.from == sizeof(T)) {
      for (std::int64_t row = 0; row < rows; ++row)
        std::memcpy(place + row * longest_side, line + row * std::int64_t{sizeof(T)}, sizeof(T));
    } else {
      for (std::int64_t row = 0; row < rows; ++row)
        std::memcpy(place + row * longest_side, line + row * along_src.from, sizeof(T));
    }
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    std::byte* const line = to + row * along_src.to;
    const T* const place = buffer + row * longest_side;
    if (along_dst.to == sizeof(T)) {
      std::memcpy(line, place, static_cast<std::size_t>(columns) * sizeof(T));
    } else {
      for (std::int64_t column = 0; column < columns; ++column)
        std::memcpy(line + column * along_dst.to, place + column, sizeof(T));
    }
  }
}

void Tiling::copy(std::int64_t begin, std::int64_t end) const noexcept {
  for (std::int64_t tile = begin; tile < end; ++tile) {
    std::int64_t rest = tile;
    std::byte* to = to_;
    const std::byte* from = from_;
    std::int64_t sides[2];
    for (int d = ndim_ - 1; d >= 0; --d) {
      const Axis& axis = axes_[d];
      const bool tiled = d >= ndim_ - 2;
      const std::int64_t places = tiled ? (axis.size + side_ - 1) / side_ : axis.size;
      const std::int64_t first = rest % places * (tiled ? side_ : 1);
      rest /= places;
      to += first * axis.to;
      from += first * axis.from;
      if (tiled) sides[d - (ndim_ - 2)] = std::min(side_, axis.size - first);
    }
    switch (itemsize_) {
      case 1:
        copy_tile<std::uint8_t>(to, from, sides[0], sides[1]);
        break;
      case 2:
        copy_tile<std::uint16_t>(to, from, sides[0], sides[1]);
        break;
      case 4:
        copy_tile<std::uint32_t>(to, from, sides[0], sides[1]);
        break;
      case 8:
        copy_tile<std::uint64_t>(to, from, sides[0], sides[1]);
        break;
      default:
        copy_tile<Wide>(to, from, sides[0], sides[1]);
    }
  }
}

}  // namespace anabranch
