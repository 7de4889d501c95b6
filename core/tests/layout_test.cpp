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
