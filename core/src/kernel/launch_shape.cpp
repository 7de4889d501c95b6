#include <algorithm>
#include <limits>

#include "anabranch/kernel/kernel.hpp"

namespace anabranch {
namespace {

// Threads along x. Measured on an H200 as time relative to the best of eleven shapes, for a stencil of 8192² and for a
// transposing copy of that size: 64x4 1.00 and 3.7, 32x8 1.02 and 3.6, 8x32 1.15 and 1.00.
constexpr std::int64_t row = 64;
constexpr std::int64_t row_across = 8;
// CUDA's limits along y and z, in blocks; and along z, in threads of a block.
constexpr std::int64_t most_blocks = 65'535;
constexpr std::int64_t deepest_block = 64;
constexpr std::int64_t longest = std::numeric_limits<std::int32_t>::max() - 1024;

// The most indices that a thread of a coarse kernel runs.
constexpr std::int64_t most_per_thread = 4;
// As many indices in a row, or fewer, take all multiprocessors of a GPU only in blocks of fewer threads.
constexpr std::int64_t short_row = 2048;

// The least power of two that is at least `size`, but at most the greatest power of two up to `most`.
std::int64_t threads_for(std::int64_t size, std::int64_t most) noexcept {
  std::int64_t threads = 1;
  while (threads < size && 2 * threads <= most) threads *= 2;
  return threads;
}

}  // namespace

std::array<std::int64_t, 6> LaunchShape::grid(int threads, bool across, std::int64_t count) const noexcept {
  const auto [x, y, z] = extents();
  std::array<std::int64_t, 3> block{threads, 1, 1};
  if (ndim > 1) {
    block[0] = threads_for(x, std::min<std::int64_t>(across ? row_across : count > 1 ? threads : row, threads));
    block[1] = threads_for(y, threads / block[0]);
    block[2] = threads_for(z, std::min(deepest_block, threads / (block[0] * block[1])));
    if (!across) block[0] = threads_for(x, threads / (block[1] * block[2]));
  }
  const auto blocks = [](std::int64_t size, std::int64_t of) { return (size + of - 1) / of; };
  return {blocks(x, ndim == 1 ? count * block[0] : block[0]),
          blocks(y, ndim == 1 ? block[1] : count * block[1]),
          blocks(z, block[2]),
          block[0],
          block[1],
          block[2]};
}

std::array<std::int64_t, 6> LaunchShape::grid_of(const BlockSizes& block) const noexcept {
  std::array<std::int64_t, 6> found{1, 1, 1, 1, 1, 1};
  for (int axis = 0; axis < ndim && axis < 3; ++axis) {
    const int along = ndim - 1 - axis;  // the last axis is x
    found[along] = dims[axis] / block[axis];
    found[3 + along] = block[axis];
  }
  return found;
}

std::int64_t LaunchShape::indices_per_thread(std::int64_t resident_threads) const noexcept {
  std::int64_t count = 1;
  while (count < most_per_thread && 4 * size() >= 7 * count * resident_threads) count *= 2;
  return count;
}

// Measured on an H100: docs/internals/measurements.md.
int LaunchShape::threads_per_block(std::int64_t resident_threads, std::int64_t count) const noexcept {
  if (ndim == 1) return size() <= short_row ? 128 : count == 1 && size() >= resident_threads ? 512 : 256;
  return ndim == 3 && count == most_per_thread && dims[0] <= most_blocks ? 128 : 256;
}

bool LaunchShape::fits_line() const noexcept { return size() <= longest; }

bool LaunchShape::fits_axes() const noexcept {
  const auto [x, y, z] = extents();
  return x <= longest && y <= longest && z <= longest;
}

bool LaunchShape::fits_grid() const noexcept {
  if (!fits_axes()) return false;
  const auto [x, y, z] = extents();
  if (y <= most_blocks && z <= most_blocks) return true;
  const auto found = grid(block != 0 ? block : 256, false);
  return found[1] <= most_blocks && found[2] <= most_blocks;
}

}  // namespace anabranch
