// Arrays of random layouts, and the plain meaning of a layout to compare with.
#pragma once

#include <random>
#include <vector>

#include "anabranch/memory/layout.hpp"

namespace anabranch::check {

enum class Overlap { none, allowed };

// An array of up to 5 dimensions somewhere in some random bytes: permuted, stepped, reversed, with dimensions of 0 and
// 1, and, where elements may overlap, with strides of 0.
struct RandomArray {
  RandomArray(std::mt19937& random, std::int64_t itemsize, Overlap overlap);
  Elements elements(std::int64_t offset) { return {memory.data() + first, layout, offset}; }

  std::vector<std::byte> memory;
  std::size_t first = 0;  // where in the memory the first element lies
  Layout layout;
};

// Where the element with that row-major index, counted from the offset, lies.
std::byte* element(const Elements& elements, std::int64_t index);

}  // namespace anabranch::check
