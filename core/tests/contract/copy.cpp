// Copies and fills of any layout, against a model that goes element by element.
#include <algorithm>
#include <cstring>
#include <random>

#include "contract.hpp"
#include "random_layout.hpp"

namespace anabranch::contract {
namespace {

using namespace check;

void need_work() { need(instance().runs_work, "runs no work"); }

void copy_slowly(const Elements& dst, const Elements& src, std::int64_t count) {
  const auto itemsize = static_cast<std::size_t>(dst.layout.itemsize);
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(element(dst, i), element(src, i), itemsize);
}

TEST(copies_of_any_layout) {
  need_work();
  std::mt19937 random(1);
  const auto a = stream(device());
  for (int round = 0; round < 2000; ++round) {
    const std::int64_t itemsize = 1 << random() % 5;
    RandomArray src(random, itemsize, Overlap::allowed);
    RandomArray dst(random, itemsize, Overlap::none);
    RandomArray model = dst;
    const std::int64_t fits = std::min(src.layout.size(), dst.layout.size());
    const auto count = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(fits + 1));
    const auto src_offset =
        static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(src.layout.size() - count + 1));
    const auto dst_offset =
        static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(dst.layout.size() - count + 1));
    finish(*a, device().copy(*a, dst.elements(dst_offset), src.elements(src_offset), count));
    copy_slowly(model.elements(dst_offset), src.elements(src_offset), count);
    CHECK(dst.memory == model.memory);
  }
}

TEST(fills_of_any_layout) {
  need_work();
  std::mt19937 random(2);
  const auto a = stream(device());
  for (int round = 0; round < 2000; ++round) {
    const std::int64_t itemsize = 1 << random() % 5;
    RandomArray dst(random, itemsize, Overlap::none);
    RandomArray model = dst;
    std::byte value[16];
    for (std::byte& byte : value) byte = static_cast<std::byte>(random());
    const auto count = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(dst.layout.size() + 1));
    const auto offset = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(dst.layout.size() - count + 1));
    const Point point = device().fill(*a, dst.elements(offset), value, count);
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(element(model.elements(offset), i), value, static_cast<std::size_t>(itemsize));
    }
    finish(*a, point);
    CHECK(dst.memory == model.memory);
  }
}

TEST(large_copies_between_layouts) {
  need_work();
  const auto a = stream(device());
  const std::int64_t rows = 1000;
  const std::int64_t columns = 1037;
  std::vector<std::int32_t> src(static_cast<std::size_t>(rows * columns));
  for (std::size_t i = 0; i < src.size(); ++i) src[i] = static_cast<std::int32_t>(i);
  std::vector<std::int32_t> dst(src.size(), -1);
  const std::int64_t shape[] = {rows, columns};
  const Layout straight = row_major(2, shape, 4);
  Layout transposed = straight;  // of a (columns, rows) array
  transposed.strides[0] = 4;
  transposed.strides[1] = 4 * rows;
  const Elements from{reinterpret_cast<std::byte*>(src.data()), straight};
  const Elements to{reinterpret_cast<std::byte*>(dst.data()), transposed};
  finish(*a, device().copy(*a, to, from, rows * columns));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      CHECK(dst[static_cast<std::size_t>(j * rows + i)] == src[static_cast<std::size_t>(i * columns + j)]);
    }
  }
}

TEST(large_fills_and_copies_follow_one_another) {
  need_work();
  const auto a = stream(device());
  const auto b = stream(device());
  const std::int64_t shape[] = {1'000'003};
  const Layout layout = row_major(1, shape, 4);
  std::vector<std::int32_t> x(1'000'003);
  std::vector<std::int32_t> y(1'000'003);
  const Elements of_x{reinterpret_cast<std::byte*>(x.data()), layout};
  const Elements of_y{reinterpret_cast<std::byte*>(y.data()), layout};
  for (std::int32_t round = 1; round <= 10; ++round) {
    device().wait(*b, *a, device().fill(*a, of_x, &round, shape[0]));
    device().wait(*a, *b, device().copy(*b, of_y, of_x, shape[0]));
    finish(*b);
    CHECK(std::all_of(y.begin(), y.end(), [round](std::int32_t value) { return value == round; }));
  }
}

}  // namespace
}  // namespace anabranch::contract
