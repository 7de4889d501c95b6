#include <algorithm>
#include <limits>

#include "anabranch/kernel.hpp"

namespace anabranch {
namespace {

constexpr std::int64_t warp = 32;
// What CUDA allows along y and z, in blocks; and along z, in threads of one.
constexpr std::int64_t most_blocks = 65'535;
constexpr std::int64_t deepest_block = 64;
constexpr std::int64_t longest = std::numeric_limits<std::int32_t>::max() - 1024;

// The least power of two that is at least `size`, or the greatest that is at most `most`.
std::int64_t threads_for(std::int64_t size, std::int64_t most) noexcept {
  std::int64_t threads = 1;
  while (threads < size && 2 * threads <= most) threads *= 2;
  return threads;
}

}  // namespace

std::array<std::int64_t, 6> LaunchShape::grid(int threads) const noexcept {
  const auto [x, y, z] = extents();
  std::array<std::int64_t, 3> block{threads, 1, 1};
  if (ndim > 1) {
    block[0] = threads_for(x, std::min<std::int64_t>(warp, threads));
    block[1] = threads_for(y, threads / block[0]);
    block[2] = threads_for(z, std::min(deepest_block, threads / (block[0] * block[1])));
    block[0] = threads_for(x, threads / (block[1] * block[2]));
  }
  const auto blocks = [](std::int64_t size, std::int64_t of) { return (size + of - 1) / of; };
  return {blocks(x, block[0]), blocks(y, block[1]), blocks(z, block[2]), block[0], block[1], block[2]};
}

bool LaunchShape::fits_grid() const noexcept {
  const auto [x, y, z] = extents();
  if (x > longest || y > longest || z > longest) return false;
  if (y <= most_blocks && z <= most_blocks) return true;
  const auto found = grid(block != 0 ? block : 256);
  return found[1] <= most_blocks && found[2] <= most_blocks;
}

}  // namespace anabranch
