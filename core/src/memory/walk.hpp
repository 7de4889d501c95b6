#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "anabranch/memory/layout.hpp"

namespace anabranch {

// Walks the elements of a range in row-major order, run by run along the innermost dimension.
class Walk {
 public:
  explicit Walk(const Elements& elements) : layout_(elements.layout.merged()), pointer_(elements.pointer) {
    std::int64_t rest = elements.offset;
    for (int d = layout_.ndim - 1; d >= 0; --d) {
      index_[d] = rest % layout_.shape[d];
      rest /= layout_.shape[d];
      pointer_ += index_[d] * layout_.strides[d];
    }
  }

  std::byte* pointer() const noexcept { return pointer_; }
  std::int64_t stride() const noexcept { return layout_.strides[layout_.ndim - 1]; }
  std::int64_t run() const noexcept { return layout_.shape[layout_.ndim - 1] - index_[layout_.ndim - 1]; }

  void advance(std::int64_t count) noexcept {
    int d = layout_.ndim - 1;
    index_[d] += count;
    pointer_ += count * layout_.strides[d];
    while (d > 0 && index_[d] == layout_.shape[d]) {
      pointer_ -= index_[d] * layout_.strides[d];
      index_[d] = 0;
      --d;
      ++index_[d];
      pointer_ += layout_.strides[d];
    }
  }

 private:
  const Layout layout_;
  std::byte* pointer_;
  std::int64_t index_[max_dimensions] = {};
};

// Calls `visit(to, to_stride, from, from_stride, count)` for each run of elements that both sides have in one stride.
template <class Visit>
void walk_together(const Elements& dst, const Elements& src, std::int64_t count, Visit visit) noexcept {
  if (count == 0) return;
  Walk to(dst);
  Walk from(src);
  while (true) {
    const std::int64_t run = std::min({to.run(), from.run(), count});
    visit(to.pointer(), to.stride(), from.pointer(), from.stride(), run);
    count -= run;
    if (count == 0) return;
    to.advance(run);
    from.advance(run);
  }
}

}  // namespace anabranch
