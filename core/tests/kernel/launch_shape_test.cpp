// The grids of launches over an index space.
#include <array>
#include <random>

#include "anabranch/kernel/kernel.hpp"
#include "check.hpp"

namespace anabranch {
namespace {

LaunchShape row(std::int64_t size) { return {.dims = {size, 1, 1, 1}}; }

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

TEST(grids_have_few_blocks_along_y_and_z) {
  const auto fits = [](int ndim, std::int64_t first, std::int64_t second, std::int64_t third) {
    return LaunchShape{.ndim = ndim, .dims = {first, second, third, 1}}.fits_grid();
  };
  CHECK(fits(2, 65'535 * 64, 3, 1) && !fits(2, 65'535 * 64 + 1, 3, 1));
  CHECK(fits(3, 65'535 * 16, 3, 3) && !fits(3, 65'535 * 16 + 1, 3, 3));
  CHECK(row(1 << 30).fits_grid() && !row(std::int64_t{1} << 31).fits_grid());
  CHECK(row(1 << 30).fits_line() && !row(std::int64_t{1} << 31).fits_line());
}

TEST(blocks_of_coarse_kernels_are_rows) {
  const LaunchShape shape{.ndim = 2, .dims = {8192, 8192}};
  CHECK((shape.grid(256, false, 4) == std::array<std::int64_t, 6>{32, 2048, 1, 256, 1, 1}));
  CHECK((shape.grid(256, false, 1) == std::array<std::int64_t, 6>{128, 2048, 1, 64, 4, 1}));
}

TEST(threads_run_several_indices_where_most_have_some) {
  const std::int64_t resident = 1000;
  const auto plane = [](std::int64_t size) { return LaunchShape{.ndim = 2, .dims = {size, 1, 1, 1}}; };
  CHECK(!plane(1999).is_large(resident, false) && plane(2000).is_large(resident, false));
  CHECK(!plane(3999).is_large(resident, true) && plane(4000).is_large(resident, true));
  CHECK(!row(3999).is_large(resident, false) && row(4000).is_large(resident, false));
  CHECK(!plane(1'000'000).is_large(0, false));
  CHECK(plane(1749).indices_per_thread(resident) == 1);
  CHECK(plane(1750).indices_per_thread(resident) == 2 && plane(3499).indices_per_thread(resident) == 2);
  CHECK(plane(3500).indices_per_thread(resident) == 4 && plane(1'000'000).indices_per_thread(resident) == 4);
}

TEST(blocks_have_the_threads_that_suit_the_launch) {
  const std::int64_t resident = 100'000;
  CHECK(row(2048).threads_per_block(resident, 1) == 128);
  CHECK(row(2049).threads_per_block(resident, 1) == 256);
  CHECK(row(resident).threads_per_block(resident, 1) == 512);
  CHECK(row(4 * resident).threads_per_block(resident, 4) == 256);
  LaunchShape box{.ndim = 3, .dims = {64, 128, 128, 1}};
  CHECK(box.threads_per_block(resident, 1) == 256);
  CHECK(box.threads_per_block(resident, 4) == 128);
  box.dims[0] = 65'536;  // more than there may be blocks along z
  CHECK(box.threads_per_block(resident, 4) == 256);
}

TEST(a_grid_of_given_blocks_has_the_last_axis_along_x) {
  const LaunchShape shape{.ndim = 3, .dims = {4, 6, 64, 1}};
  CHECK((shape.grid_of({2, 3, 32}) == std::array<std::int64_t, 6>{2, 2, 2, 32, 3, 2}));
  const LaunchShape line{.ndim = 1, .dims = {1024, 1, 1, 1}};
  CHECK((line.grid_of({256, 0, 0}) == std::array<std::int64_t, 6>{4, 1, 1, 256, 1, 1}));
}

}  // namespace
}  // namespace anabranch
