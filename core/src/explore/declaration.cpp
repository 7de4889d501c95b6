#include "declaration.hpp"

#include <algorithm>
#include <cstring>

namespace anabranch::explore {
namespace {

constexpr std::uint8_t writable = 2;

using Trial = std::function<void()>;

// A byte of write-only memory before a trial. Differs with the position, so that a kernel that copies such memory is
// not taken for one that leaves it, and between trials, also in the sign. Finite as floats of every size, and not zero.
std::byte filling(std::size_t position, int trial) {
  // The end of splitmix64 (Steele, Lea and Flood 2014).
  std::uint64_t bits = (position / 8 * 2 + static_cast<std::size_t>(trial) + 1) * 0x9e3779b97f4a7c15;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
  const auto drawn = static_cast<unsigned>(bits >> position % 8 * 8);
  const unsigned magnitude = 0x30 + (drawn & 0x1F);
  const auto negative = static_cast<unsigned>(position / 8 + static_cast<std::size_t>(trial)) % 2;
  return static_cast<std::byte>(magnitude | negative << 7);
}

// Bytes without a gap between them, what may be done with each, and what they were.
struct Region {
  std::byte* low;
  std::byte* high;
  std::size_t start = 0;  // the position of its first byte
  std::vector<std::uint8_t> allowed = {};
  std::vector<std::byte> before = {};
  std::vector<std::byte> after[2] = {};

  std::size_t size() const noexcept { return static_cast<std::size_t>(high - low); }
  bool written_alone(std::size_t i) const noexcept { return allowed[i] == writable; }
  // Whether the kernel left write-only memory as it was before both trials.
  bool left(std::size_t i, std::byte one, std::byte two) const noexcept {
    return written_alone(i) && one == filling(start + i, 0) && two == filling(start + i, 1);
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

void fill(Region& region, int trial) {
  std::copy(region.before.begin(), region.before.end(), region.low);
  for (std::size_t i = 0; i < region.size(); ++i) {
    if (region.written_alone(i)) region.low[i] = filling(region.start + i, trial);
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
      if (region.left(i, one, two)) continue;  // which does not count as a read
      std::size_t parameter = 0;
      while (declared[parameter].access() != Access::write) ++parameter;
      if (region.written_alone(i)) parameter = parameter_at(declared, region.low + i, false);
      return Violation{parameter, false};
    }
  }
  return std::nullopt;
}

// Whether a result depends on what the parameter's memory contains before: another trial differs in that alone from the
// first one.
bool is_read(std::vector<Region>& regions, const Declared& parameter, const Trial& trial) {
  for (Region& region : regions) {
    fill(region, 0);
    if (parameter.first() < region.low || parameter.first() >= region.high) continue;
    parameter.each([&](std::byte* byte) {
      const auto i = static_cast<std::size_t>(byte - region.low);
      if (region.written_alone(i)) *byte = filling(region.start + i, 1);
    });
  }
  trial();
  for (const Region& region : regions) {
    for (std::size_t i = 0; i < region.size(); ++i) {
      const std::byte one = region.after[0][i];
      const std::byte two = region.low[i];
      if ((region.allowed[i] & writable) != 0 && one != two && !region.left(i, one, two)) return true;
    }
  }
  return false;
}

// The parameter that is read, given that one is. `guess`: if no single one makes a difference.
std::size_t find_read(std::vector<Region>& regions, std::span<const Declared> declared, std::size_t guess,
                      const Trial& trial) {
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].access() == Access::write && declared[i].bytes() != 0 && is_read(regions, declared[i], trial))
      return i;
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
  for (int i = 0; i < 2; ++i) {
    for (Region& region : regions) fill(region, i);
    trial();
    for (Region& region : regions) region.after[i].assign(region.low, region.high);
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
