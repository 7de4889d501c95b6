#include "declaration.hpp"

#include <algorithm>
#include <cstring>

namespace anabranch::explore {
namespace {

constexpr std::uint8_t writable = 2;

// Finite and distinct as floats of every size, and not zero.
constexpr std::byte fillings[] = {std::byte{0x41}, std::byte{0x3C}};

// Bytes without a gap between them, what may be done with each, and what they were.
struct Region {
  std::byte* low;
  std::byte* high;
  std::vector<std::uint8_t> allowed = {};
  std::vector<std::byte> before = {};
  std::vector<std::byte> after[2] = {};

  std::size_t size() const noexcept { return static_cast<std::size_t>(high - low); }
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
  for (Region& region : regions) {
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

void fill(Region& region, std::byte value) {
  std::copy(region.before.begin(), region.before.end(), region.low);
  for (std::size_t i = 0; i < region.size(); ++i) {
    if (region.allowed[i] == writable) region.low[i] = value;
  }
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
    const std::byte one = region.after[0][i];
    const std::byte two = region.after[1][i];
    if ((region.allowed[i] & writable) == 0) {
      if (one != region.before[i] || two != region.before[i])
        return Violation{parameter_at(declared, region.low + i, true), true};
    } else if (one != two) {
      // The kernel left the byte unchanged, which does not count as a read.
      if (region.allowed[i] == writable && one == fillings[0] && two == fillings[1]) continue;
      std::size_t parameter = 0;
      while (declared[parameter].access() != Access::write) ++parameter;
      if (region.allowed[i] == writable) parameter = parameter_at(declared, region.low + i, false);
      return Violation{parameter, false};
    }
  }
  return std::nullopt;
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

std::optional<Violation> verify(std::span<const Declared> declared, const std::function<void()>& trial) {
  std::vector<Region> regions = regions_of(declared);
  for (int i = 0; i < 2; ++i) {
    for (Region& region : regions) fill(region, fillings[i]);
    trial();
    for (Region& region : regions) region.after[i].assign(region.low, region.high);
  }
  for (Region& region : regions) std::copy(region.before.begin(), region.before.end(), region.low);
  for (const Region& region : regions) {
    if (const auto found = compare(region, declared)) return found;
  }
  return std::nullopt;
}

}  // namespace anabranch::explore
