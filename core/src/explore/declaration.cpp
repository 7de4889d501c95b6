#include "declaration.hpp"

#include <algorithm>
#include <cstring>

namespace anabranch::explore {
namespace {

constexpr std::uint8_t writable = 2;

using Trial = std::function<void()>;

// What write-only memory contains before a trial.
//
// Two fillings are drawn: large values, which differ with the position, and of which one filling has the opposite signs
// of the other. So what a kernel copies, computes or compares differs between them, and so does the maximum or the
// minimum of them and other values. But a large float absorbs what is added to it, and none is zero: zeros show sums
// and branches on zero. What the launch itself finds shows branches on other values that are usual, as of a flag that
// is 1.
enum Filling : std::uint8_t { drawn, negated, zeros, content };
constexpr std::size_t fillings = 4;

// Differs with the position, so that a kernel that copies such memory is not taken for one that leaves it, and between
// the two fillings, also in the sign. Finite as floats of every size, and not zero.
std::byte draw(std::size_t position, Filling filling) {
  // The end of splitmix64 (Steele, Lea and Flood 2014).
  std::uint64_t bits = (position / 8 * 2 + static_cast<std::size_t>(filling) + 1) * 0x9e3779b97f4a7c15;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
  const auto byte = static_cast<unsigned>(bits >> position % 8 * 8);
  const unsigned magnitude = 0x50 + (byte & 0x1F);
  const auto negative = static_cast<unsigned>(position / 8 + static_cast<std::size_t>(filling)) % 2;
  return static_cast<std::byte>(magnitude | negative << 7);
}

// Bytes without a gap between them, what may be done with each, and what they were.
struct Region {
  std::byte* low;
  std::byte* high;
  std::size_t start = 0;  // the position of its first byte
  std::vector<std::uint8_t> allowed = {};
  std::vector<std::byte> before = {};
  std::vector<std::vector<std::byte>> after = {};  // for each filling

  std::size_t size() const noexcept { return static_cast<std::size_t>(high - low); }
  bool written_alone(std::size_t i) const noexcept { return allowed[i] == writable; }
  std::byte filled(std::size_t i, Filling filling) const {
    if (!written_alone(i) || filling == content) return before[i];
    return filling == zeros ? std::byte{0} : draw(start + i, filling);
  }
  // Whether the kernel left write-only memory as it was before every trial, which does not count as a read.
  bool left(std::size_t i) const {
    if (!written_alone(i)) return false;
    for (std::size_t k = 0; k < after.size(); ++k) {
      if (after[k][i] != filled(i, static_cast<Filling>(k))) return false;
    }
    return true;
  }
};

std::vector<Region> regions_of(std::span<const Declared> declared) {
  std::vector<Region> regions;
  std::vector<const Declared*> sorted;
  for (const Declared& one : declared) {
    if (one.bytes() != 0) sorted.push_back(&one);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const Declared* one, const Declared* two) { return one->first() < two->first(); });
  for (const Declared* one : sorted) {
    std::byte* const high = one->first() + one->bytes();
    if (!regions.empty() && one->first() < regions.back().high) {
      regions.back().high = std::max(regions.back().high, high);
    } else {
      regions.push_back({one->first(), high});
    }
  }
  std::size_t start = 0;
  for (Region& region : regions) {
    region.start = start;
    start += region.size();
    region.allowed.resize(region.size());
    region.before.assign(region.low, region.high);
    for (const Declared* one : sorted) {
      if (one->first() < region.low || one->first() >= region.high) continue;
      const auto access = static_cast<std::uint8_t>(one->access());
      one->each([&](std::byte* byte) { region.allowed[static_cast<std::size_t>(byte - region.low)] |= access; });
    }
  }
  return regions;
}

void fill(Region& region, Filling filling) {
  for (std::size_t i = 0; i < region.size(); ++i) region.low[i] = region.filled(i, filling);
}

// How many of the fillings tell anything: where nothing is write-only, two runs that begin with the same; where that is
// all zeros, it need not be tried twice.
std::size_t fillings_of(const std::vector<Region>& regions) {
  std::size_t count = 2;
  for (const Region& region : regions) {
    for (std::size_t i = 0; i < region.size(); ++i) {
      if (!region.written_alone(i)) continue;
      if (region.before[i] != std::byte{0}) return fillings;
      count = fillings - 1;
    }
  }
  return count;
}

// The access of a kind that covers the byte, or the first of that kind.
std::size_t parameter_at(std::span<const Declared> declared, const std::byte* byte, bool written) {
  std::size_t found = 0;
  bool any = false;
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const Declared& one = declared[i];
    const bool covers = byte >= one.first() && byte < one.first() + one.bytes();
    if (!covers || writes(one.access()) == written) continue;
    if (!any) found = i;
    any = true;
  }
  if (any) return found;
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (byte >= declared[i].first() && byte < declared[i].first() + declared[i].bytes()) return i;
  }
  return 0;
}

std::optional<Violation> compare(const Region& region, std::span<const Declared> declared) {
  for (std::size_t i = 0; i < region.size(); ++i) {
    const bool may_write = (region.allowed[i] & writable) != 0;
    const std::byte expected = may_write ? region.after.front()[i] : region.before[i];
    const bool same = std::all_of(region.after.begin(), region.after.end(),
                                  [&](const std::vector<std::byte>& after) { return after[i] == expected; });
    if (same || region.left(i)) continue;
    if (!may_write) return Violation{parameter_at(declared, region.low + i, true), true};
    if (region.written_alone(i)) return Violation{parameter_at(declared, region.low + i, false), false};
    const auto first = std::find_if(declared.begin(), declared.end(),
                                    [](const Declared& one) { return one.access() == Access::write; });
    if (first == declared.end()) continue;  // the kernel does something else each time
    return Violation{static_cast<std::size_t>(first - declared.begin()), false};
  }
  return std::nullopt;
}

// Whether a result depends on what the parameter's memory contains before: another trial differs in that alone from the
// first one.
bool is_read(std::vector<Region>& regions, const Declared& parameter, Filling filling, const Trial& trial) {
  for (Region& region : regions) {
    fill(region, drawn);
    if (parameter.first() < region.low || parameter.first() >= region.high) continue;
    parameter.each([&](std::byte* byte) {
      const auto i = static_cast<std::size_t>(byte - region.low);
      *byte = region.filled(i, filling);
    });
  }
  std::vector<std::vector<std::byte>> began;
  for (const Region& region : regions) began.emplace_back(region.low, region.high);
  trial();
  for (std::size_t k = 0; k < regions.size(); ++k) {
    const Region& region = regions[k];
    for (std::size_t i = 0; i < region.size(); ++i) {
      const std::byte one = region.after[drawn][i];
      const std::byte two = region.low[i];
      if ((region.allowed[i] & writable) == 0 || one == two) continue;
      const bool left = region.written_alone(i) && one == region.filled(i, drawn) && two == began[k][i];
      if (!left) return true;
    }
  }
  return false;
}

// The parameter that is read, given that one is. `guess`: if no single one makes a difference.
std::size_t find_read(std::vector<Region>& regions, std::span<const Declared> declared, std::size_t guess,
                      const Trial& trial) {
  const std::size_t count = regions.front().after.size();
  for (std::size_t k = negated; k < count; ++k) {
    for (std::size_t i = 0; i < declared.size(); ++i) {
      if (declared[i].access() != Access::write || declared[i].bytes() == 0) continue;
      if (is_read(regions, declared[i], static_cast<Filling>(k), trial)) return i;
    }
  }
  return guess;
}

}  // namespace

Declared::Declared(const Touch& touch)
    : memory_(touch.storage->pointer() + touch.low),
      bytes_(touch.high - touch.low),
      start_(memory_),
      access_(touch.access) {
  if (!touch.layout) return;
  layout_ = *touch.layout;
  start_ = touch.storage->pointer() + touch.first;
}

void Declared::each(const std::function<void(std::byte*)>& see) const {
  if (!layout_) {
    for (std::size_t i = 0; i < bytes_; ++i) see(memory_ + i);
    return;
  }
  const std::int64_t count = layout_->size();
  for (std::int64_t element = 0; element < count; ++element) {
    std::byte* place = start_;
    std::int64_t rest = element;
    for (int d = layout_->ndim - 1; d >= 0; --d) {
      place += rest % layout_->shape[d] * layout_->strides[d];
      rest /= layout_->shape[d];
    }
    for (std::int64_t i = 0; i < layout_->itemsize; ++i) see(place + i);
  }
}

std::optional<Violation> verify(std::span<const Declared> declared, const Trial& trial) {
  std::vector<Region> regions = regions_of(declared);
  const std::size_t count = fillings_of(regions);
  for (std::size_t i = 0; i < count; ++i) {
    for (Region& region : regions) fill(region, static_cast<Filling>(i));
    trial();
    for (Region& region : regions) region.after.emplace_back(region.low, region.high);
  }
  std::optional<Violation> found;
  for (const Region& region : regions) {
    found = compare(region, declared);
    if (found) break;
  }
  if (found && !found->written) found->parameter = find_read(regions, declared, found->parameter, trial);
  for (Region& region : regions) std::copy(region.before.begin(), region.before.end(), region.low);
  return found;
}

}  // namespace anabranch::explore
