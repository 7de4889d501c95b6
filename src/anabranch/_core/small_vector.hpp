#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace anabranch::python {

// A vector that allocates only for more than `few` elements.
template <class T, std::size_t few>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  std::size_t size() const noexcept { return size_; }
  T* data() noexcept { return many_.empty() ? few_.data() : many_.data(); }
  const T* data() const noexcept { return many_.empty() ? few_.data() : many_.data(); }
  T& operator[](std::size_t i) noexcept { return data()[i]; }
  void push_back(T element) { append(&element, 1); }
  void append(const T* elements, std::size_t count) { std::copy_n(elements, count, extend(count)); }
  // Appends `count` uninitialized elements, which the caller sets.
  T* extend(std::size_t count) {
    const std::size_t begin = size_;
    if (begin + count > (many_.empty() ? few : many_.size())) grow(begin + count);
    size_ += count;
    return data() + begin;
  }

 private:
  void grow(std::size_t size) {
    std::vector<T> more(2 * size);
    std::copy_n(data(), size_, more.data());
    many_.swap(more);
  }

  std::size_t size_ = 0;
  std::array<T, few> few_;
  std::vector<T> many_;
};

using Text = SmallVector<char, 512>;
using Words = SmallVector<std::uint64_t, 32>;
using Addresses = SmallVector<const void*, 16>;

}  // namespace anabranch::python
