// Tests whether two arrays share memory: whether some element of one lies within an element's size of one of the other.
#include <algorithm>
#include <cstdlib>

#include "anabranch/memory/layout.hpp"

namespace anabranch {
namespace {

// The limit of tries. Views made by slicing one array take a few tries per dimension.
constexpr int most_tries = 10'000;

std::int64_t floor_divide(std::int64_t dividend, std::int64_t divisor) {
  return dividend / divisor - (dividend % divisor < 0);
}

std::int64_t ceiling_divide(std::int64_t dividend, std::int64_t divisor) { return -floor_divide(-dividend, divisor); }

std::int64_t common_divisor(std::int64_t a, std::int64_t b) { return b == 0 ? a : common_divisor(b, a % b); }

// The sums of up to `count` times each step; all steps are positive. With the steps in descending order, a target range
// leaves few choices for each count, because the remaining steps cannot make up for more.
class Sums {
 public:
  // Adds `count` steps from `origin`, in either direction.
  void add(std::int64_t step, std::int64_t count) noexcept {
    if (step == 0 || count == 0) return;
    if (step < 0) offset_ += step * count;
    step = std::abs(step);
    const auto same = std::find_if(terms_, terms_ + size_, [step](const Term& term) { return term.step == step; });
    if (same == terms_ + size_) terms_[size_++] = {step, 0, 0, 0};
    same->count += count;
  }

  // Whether some sum lies in [low, high].
  bool reach(std::int64_t low, std::int64_t high) noexcept {
    std::sort(terms_, terms_ + size_, [](const Term& a, const Term& b) { return a.step > b.step; });
    std::int64_t rest = 0;
    std::int64_t divisor = 0;
    for (int i = size_ - 1; i >= 0; --i) {
      terms_[i].rest = rest += terms_[i].step * terms_[i].count;
      terms_[i].divisor = divisor = common_divisor(terms_[i].step, divisor);
    }
    tries_ = 0;
    return search(0, low - offset_, high - offset_);
  }

 private:
  struct Term {
    std::int64_t step;
    std::int64_t count;
    std::int64_t rest;     // the sum of all steps from this term on
    std::int64_t divisor;  // of all steps from this term on
  };

  bool search(int i, std::int64_t low, std::int64_t high) noexcept {
    const std::int64_t most = i < size_ ? terms_[i].rest : 0;
    low = std::max<std::int64_t>(low, 0);
    high = std::min(high, most);
    if (low > high) return false;
    if (low == 0) return true;
    const Term& term = terms_[i];
    if (ceiling_divide(low, term.divisor) * term.divisor > high) return false;
    const std::int64_t after = i + 1 < size_ ? terms_[i + 1].rest : 0;
    const std::int64_t last = std::min(term.count, floor_divide(high, term.step));
    for (std::int64_t n = std::max<std::int64_t>(ceiling_divide(low - after, term.step), 0); n <= last; ++n) {
      if (++tries_ > most_tries || search(i + 1, low - n * term.step, high - n * term.step)) return true;
    }
    return false;
  }

  Term terms_[2 * max_dimensions];
  int size_ = 0;
  int tries_ = 0;
  std::int64_t offset_ = 0;
};

}  // namespace

bool overlap(const std::byte* a, const Layout& a_layout, const std::byte* b, const Layout& b_layout) noexcept {
  std::int64_t a_low = 0;
  std::int64_t a_high = 0;
  std::int64_t b_low = 0;
  std::int64_t b_high = 0;
  a_layout.extent(a_low, a_high);
  b_layout.extent(b_low, b_high);
  const std::int64_t distance = b - a;
  if (a_low == a_high || b_low == b_high || a_low >= distance + b_high || distance + b_low >= a_high) return false;
  if (a_layout.contiguous() && b_layout.contiguous()) return true;
  // An element of `a` begins before the end of an element of `b`, and vice versa.
  Sums distances;
  for (int d = 0; d < a_layout.ndim; ++d) distances.add(a_layout.strides[d], a_layout.shape[d] - 1);
  for (int d = 0; d < b_layout.ndim; ++d) distances.add(-b_layout.strides[d], b_layout.shape[d] - 1);
  return distances.reach(distance - a_layout.itemsize + 1, distance + b_layout.itemsize - 1);
}

}  // namespace anabranch
