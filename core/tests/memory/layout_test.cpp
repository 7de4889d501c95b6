// Layouts, and copies and fills made on the spot.
#include <cstring>
#include <limits>
#include <random>
#include <set>

#include "anabranch/error.hpp"
#include "check.hpp"
#include "random_layout.hpp"

namespace anabranch {
namespace {

using namespace check;

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

Layout rows(std::initializer_list<std::int64_t> shape, std::int64_t itemsize) {
  return row_major(static_cast<int>(shape.size()), shape.begin(), itemsize);
}

// Where the elements lie, as offsets from the first.
std::vector<std::ptrdiff_t> places(const Layout& layout) {
  static std::byte zero[1];
  std::vector<std::ptrdiff_t> all;
  for (std::int64_t i = 0; i < layout.size(); ++i) all.push_back(element({zero, layout, 0}, i) - zero);
  return all;
}

TEST(row_major_lays_elements_one_after_the_other) {
  const Layout layout = rows({2, 3, 4}, 8);
  CHECK_EQUAL(layout.size(), 24);
  CHECK_EQUAL(layout.strides[0], 96);
  CHECK_EQUAL(layout.strides[1], 32);
  CHECK_EQUAL(layout.strides[2], 8);
  CHECK(layout.contiguous());
  CHECK_EQUAL(rows({}, 4).size(), 1);
  CHECK_EQUAL(rows({3, 0, 2}, 4).size(), 0);
}

TEST(row_major_names_what_does_not_fit) {
  const auto message = [](std::initializer_list<std::int64_t> shape, std::int64_t itemsize) -> std::string {
    try {
      rows(shape, itemsize);
      return {};
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::value);
      return error.what();
    }
  };
  CHECK(message({2, -3}, 4).find("-3") != std::string::npos);
  CHECK(message({largest, 2}, 1).find("2**63") != std::string::npos);
  CHECK(message({std::int64_t{1} << 32, std::int64_t{1} << 31}, 1).find("2**63") != std::string::npos);
  CHECK(message({largest}, 2).find("2**63") != std::string::npos);
  CHECK(message({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 1).find("17") != std::string::npos);
  CHECK_EQUAL(message({largest}, 1), "");
  CHECK_EQUAL(message({std::int64_t{1} << 31, std::int64_t{1} << 31}, 1), "");
  CHECK_EQUAL(message({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 1), "");
}

TEST(contiguous_means_one_after_the_other) {
  std::mt19937 random(3);
  for (int round = 0; round < 5000; ++round) {
    const Layout layout = RandomArray(random, 4, Overlap::allowed).layout;
    bool expected = true;
    std::ptrdiff_t next = 0;
    for (const std::ptrdiff_t place : places(layout)) {
      expected &= place == next;
      next += 4;
    }
    CHECK_EQUAL(layout.contiguous(), expected);
  }
}

TEST(extent_covers_the_elements_and_no_more) {
  std::mt19937 random(4);
  for (int round = 0; round < 5000; ++round) {
    const Layout layout = RandomArray(random, 2, Overlap::allowed).layout;
    const std::vector<std::ptrdiff_t> all = places(layout);
    std::int64_t low = -1;
    std::int64_t high = -1;
    layout.extent(low, high);
    CHECK_EQUAL(low, all.empty() ? 0 : *std::min_element(all.begin(), all.end()));
    CHECK_EQUAL(high, all.empty() ? 0 : *std::max_element(all.begin(), all.end()) + 2);
  }
}

TEST(merged_has_the_same_elements_in_fewer_dimensions) {
  std::mt19937 random(5);
  for (int round = 0; round < 5000; ++round) {
    const Layout layout = RandomArray(random, 4, Overlap::allowed).layout;
    const Layout merged = layout.merged();
    CHECK(merged.ndim >= 1);
    CHECK(merged.ndim <= std::max(layout.ndim, 1));
    CHECK_EQUAL(merged.itemsize, layout.itemsize);
    CHECK(places(merged) == places(layout));
    if (layout.contiguous() && layout.size() > 0) CHECK_EQUAL(merged.ndim, 1);
  }
  Layout every_second = rows({4, 6}, 8);
  every_second.shape[1] = 3;
  every_second.strides[1] = 16;
  CHECK_EQUAL(every_second.merged().ndim, 1);
}

TEST(overlap_is_that_of_the_bytes) {
  std::mt19937 random(8);
  std::byte memory[1];
  int overlapping = 0;
  for (int round = 0; round < 20000; ++round) {
    const RandomArray a(random, 1 + round % 5, Overlap::allowed);
    const RandomArray b(random, 1 + round % 3, Overlap::allowed);
    const auto distance = static_cast<std::ptrdiff_t>(random() % 41) - 20;
    std::set<std::ptrdiff_t> bytes;
    for (const std::ptrdiff_t place : places(a.layout)) {
      for (int i = 0; i < a.layout.itemsize; ++i) bytes.insert(place + i);
    }
    bool expected = false;
    for (const std::ptrdiff_t place : places(b.layout)) {
      for (int i = 0; i < b.layout.itemsize; ++i) expected |= bytes.count(distance + place + i) != 0;
    }
    CHECK_EQUAL(overlap(memory, a.layout, memory + distance, b.layout), expected);
    overlapping += expected;
  }
  CHECK(overlapping > 2000 && overlapping < 18000);
}

// Rows [first, first + count) with a step, and columns likewise, of a matrix of a million by a million.
struct Slice {
  std::int64_t first, step, count;
};

std::pair<const std::byte*, Layout> slice(Slice rows, Slice columns) {
  constexpr std::int64_t row = 8 * 1'000'000;
  Layout layout;
  layout.ndim = 2;
  layout.itemsize = 8;
  layout.shape[0] = rows.count;
  layout.strides[0] = rows.step * row;
  layout.shape[1] = columns.count;
  layout.strides[1] = columns.step * 8;
  const std::int64_t first = rows.first * row + columns.first * 8;
  return {reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(first + (std::int64_t{1} << 20))), layout};
}

TEST(overlap_of_large_slices_is_exact) {
  const auto both = [](std::pair<const std::byte*, Layout> a, std::pair<const std::byte*, Layout> b) {
    CHECK_EQUAL(overlap(a.first, a.second, b.first, b.second), overlap(b.first, b.second, a.first, a.second));
    return overlap(a.first, a.second, b.first, b.second);
  };
  const Slice all{0, 1, 1'000'000};
  const Slice even{0, 2, 500'000};
  const Slice odd{1, 2, 500'000};
  CHECK(!both(slice(all, even), slice(all, odd)));
  CHECK(!both(slice(even, all), slice(odd, all)));
  CHECK(!both(slice(even, even), slice(even, odd)));
  CHECK(both(slice(even, even), slice(all, all)));
  CHECK(!both(slice(all, {0, 1, 500'000}), slice(all, {500'000, 1, 500'000})));
  CHECK(both(slice(all, {0, 1, 500'001}), slice(all, {500'000, 1, 500'000})));
  CHECK(!both(slice(all, {0, 3, 333'333}), slice(all, {1, 6, 166'666})));
  CHECK(both(slice(all, {0, 3, 333'333}), slice(all, {1, 2, 499'999})));
  CHECK(!both(slice({7, 1, 1}, all), slice({8, 1, 900'000}, {3, 5, 199'999})));
  CHECK(!both(slice({999'999, -2, 500'000}, all), slice(even, {999'999, -1, 1'000'000})));
}

TEST(copies_made_on_the_spot) {
  std::mt19937 random(6);
  for (int round = 0; round < 5000; ++round) {
    RandomArray src(random, 8, Overlap::allowed);
    RandomArray dst(random, 8, Overlap::none);
    RandomArray model = dst;
    const std::int64_t count = std::min(src.layout.size(), dst.layout.size());
    const std::int64_t src_offset = src.layout.size() - count;
    const std::int64_t dst_offset = dst.layout.size() - count;
    copy_elements(dst.elements(dst_offset), src.elements(src_offset), count);
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(element(model.elements(dst_offset), i), element(src.elements(src_offset), i), 8);
    }
    CHECK(dst.memory == model.memory);
  }
}

TEST(fills_made_on_the_spot) {
  std::mt19937 random(7);
  for (int round = 0; round < 5000; ++round) {
    RandomArray dst(random, 4, Overlap::allowed);
    RandomArray model = dst;
    const auto value = static_cast<std::uint32_t>(random());
    const std::int64_t count = dst.layout.size() / 2;
    const std::int64_t offset = dst.layout.size() - count;
    fill_elements(dst.elements(offset), &value, count);
    for (std::int64_t i = 0; i < count; ++i) std::memcpy(element(model.elements(offset), i), &value, 4);
    CHECK(dst.memory == model.memory);
  }
}

}  // namespace
}  // namespace anabranch
