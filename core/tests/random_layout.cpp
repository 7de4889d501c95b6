#include "random_layout.hpp"

#include <algorithm>
#include <numeric>

namespace anabranch::check {

RandomArray::RandomArray(std::mt19937& random, std::int64_t itemsize, Overlap overlap) {
  const auto below = [&random](int bound) { return static_cast<int>(random() % static_cast<unsigned>(bound)); };
  layout.ndim = below(6);
  layout.itemsize = itemsize;
  std::vector<int> order(static_cast<std::size_t>(layout.ndim));
  std::iota(order.begin(), order.end(), 0);
  if (below(2)) std::shuffle(order.begin(), order.end(), random);
  // Strides from the dimension that varies fastest to the slowest.
  std::int64_t stride = itemsize;
  for (const int d : order) {
    const std::int64_t length = below(20) ? 1 + below(6) : 0;
    const std::int64_t step = below(3) ? 1 : 1 + below(3);
    layout.shape[d] = length;
    layout.strides[d] = stride * step * (below(4) ? 1 : -1);
    stride *= step * std::max<std::int64_t>(length, 1);
    if (overlap == Overlap::allowed && !below(6)) layout.strides[d] = 0;
  }
  std::int64_t low = 0;
  std::int64_t high = 0;
  layout.extent(low, high);
  first = static_cast<std::size_t>(-low) + static_cast<std::size_t>(below(64));
  memory.resize(first + static_cast<std::size_t>(high) + static_cast<std::size_t>(below(64)));
  for (std::byte& byte : memory) byte = static_cast<std::byte>(random());
}

std::byte* element(const Elements& elements, std::int64_t index) {
  std::byte* pointer = elements.pointer;
  index += elements.offset;
  for (int d = elements.layout.ndim - 1; d >= 0; --d) {
    pointer += index % elements.layout.shape[d] * elements.layout.strides[d];
    index /= elements.layout.shape[d];
  }
  return pointer;
}

}  // namespace anabranch::check
