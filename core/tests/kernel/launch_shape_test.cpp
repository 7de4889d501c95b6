// The grids of launches over an index space.
#include <array>
#include <random>

#include "anabranch/kernel/kernel.hpp"
#include "check.hpp"

namespace anabranch {
namespace {

TEST(grids_cover_the_index_space_and_have_no_empty_block) {
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    LaunchShape shape{.ndim = 1 + static_cast<int>(random() % 4)};
    for (int d = 0; d < shape.ndim; ++d) shape.dims[d] = 1 + random() % (shape.ndim > 2 ? 90 : 2'000);
    const int threads = 1 << (random() % 11);
    const bool across = random() % 4 == 0;
    const std::int64_t count = across ? 1 : 1 << (random() % 3);
    const auto found = shape.grid(threads, across, count);
    const auto extents = shape.extents();
    const std::size_t repeated = shape.ndim == 1 ? 0 : 1;
    CHECK(found[3] * found[4] * found[5] <= threads);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::int64_t each = found[3 + axis] * (axis == repeated ? count : 1);
      CHECK(found[axis] * each >= extents[axis]);
      CHECK((found[axis] - 1) * each < extents[axis]);
    }
  }
}

TEST(blocks_of_coarse_kernels_are_rows) {
  const LaunchShape shape{.ndim = 2, .dims = {8192, 8192}};
  CHECK((shape.grid(256, false, 4) == std::array<std::int64_t, 6>{32, 2048, 1, 256, 1, 1}));
  CHECK((shape.grid(256, false, 1) == std::array<std::int64_t, 6>{128, 2048, 1, 64, 4, 1}));
}

}  // namespace
}  // namespace anabranch
