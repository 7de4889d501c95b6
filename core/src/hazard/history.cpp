#include "anabranch/hazard/history.hpp"

#include <algorithm>

namespace anabranch {
namespace {

bool equal(const Layout& a, const Layout& b) noexcept {
  return a.ndim == b.ndim && a.itemsize == b.itemsize && std::equal(a.shape, a.shape + a.ndim, b.shape) &&
         std::equal(a.strides, a.strides + a.ndim, b.strides);
}

// Whether who comes after the one access comes after the other anyway, of which neither need be the newer one.
bool replaces(const Use& one, const Use& other) noexcept {
  if ((!writes(one.access) && writes(other.access)) || !one.where.contains(other.where)) return false;
  if (!one.when.lane || !other.when.lane) return one.stream == other.stream && one.point >= other.point;
  const bool same = one.when.lane == other.when.lane && one.when.count == other.when.count;
  return same || one.when.follows(other.when);
}

}  // namespace

Footprint::Footprint(std::int64_t first, const Layout& layout) {
  std::int64_t low = 0;
  std::int64_t high = 0;
  layout.extent(low, high);
  bytes_ = {static_cast<std::size_t>(first + low), static_cast<std::size_t>(first + high)};
  if (!layout.contiguous()) elements_ = make_ref<Elements>(first, layout.merged());
}

bool Footprint::overlaps(const Footprint& other) const noexcept {
  if (!bytes_.overlaps(other.bytes_)) return false;
  if (!elements_ && !other.elements_) return true;
  // Offsets, independent of the block's address. Bytes of another block may begin before this one.
  const auto place = [](const Footprint& footprint) {
    const auto first =
        footprint.elements_ ? footprint.elements_->first : static_cast<std::int64_t>(footprint.bytes_.low);
    return reinterpret_cast<const std::byte*>(first);
  };
  const auto layout = [](const Footprint& footprint) {
    if (footprint.elements_) return footprint.elements_->layout;
    const auto size = static_cast<std::int64_t>(footprint.bytes_.high - footprint.bytes_.low);
    return row_major(1, &size, 1);
  };
  return overlap(place(*this), layout(*this), place(other), layout(other));
}

bool Footprint::contains(const Footprint& other) const noexcept {
  if (!bytes_.contains(other.bytes_)) return false;
  if (!elements_ || other.bytes_.low == other.bytes_.high) return true;
  return other.elements_ && elements_->first == other.elements_->first &&
         equal(elements_->layout, other.elements_->layout);
}

Footprint Footprint::moved(std::int64_t distance) const {
  const auto place = [distance](std::size_t byte) {
    return static_cast<std::size_t>(std::max<std::int64_t>(0, static_cast<std::int64_t>(byte) + distance));
  };
  Footprint footprint(place(bytes_.low), place(bytes_.high));
  if (elements_) footprint.elements_ = make_ref<Elements>(elements_->first + distance, elements_->layout);
  return footprint;
}

std::vector<Use> History::conflicts(const Past& before, const Stream* stream, Access access,
                                    const Footprint& where) const {
  std::vector<Use> found;
  for (const Use& use : uses_) {
    if (!writes(access) && !writes(use.access)) continue;
    if (stream && use.stream.get() == stream) continue;
    if ((use.when.lane && before.covers(use.when)) || (use.call.lane && before.covers(use.call))) continue;
    if (!use.where.overlaps(where)) continue;
    found.push_back(use);
  }
  return found;
}

// Whoever is not known to come after a forgotten access is not known to come after this one either, and this one
// conflicts with all that the forgotten one does.
bool History::note(Use use) {
  const auto replaces = [&](const Use& other) {
    if (!writes(use.access) && writes(other.access)) return false;
    const bool same = use.stream && other.stream == use.stream;
    const bool before = same || (use.when.lane && other.when.lane && use.when.follows(other.when));
    if (!before || !use.where.contains(other.where)) return false;
    if (same) use.point = std::max(use.point, other.point);  // of two threads the later may come first
    return true;
  };
  const auto place = std::find_if(uses_.begin(), uses_.end(), replaces);
  if (place == uses_.end()) {
    uses_.push_back(std::move(use));
    return true;
  }
  uses_.erase(std::remove_if(place + 1, uses_.end(), replaces), uses_.end());
  *place = std::move(use);
  return false;
}

std::vector<Use> History::join(std::vector<Use> uses) {
  std::vector<Use> left;
  for (Use& use : uses) {
    const auto older =
        std::partition(uses_.begin(), uses_.end(), [&use](const Use& other) { return !replaces(use, other); });
    left.insert(left.end(), std::make_move_iterator(older), std::make_move_iterator(uses_.end()));
    uses_.erase(older, uses_.end());
    const bool known =
        std::any_of(uses_.begin(), uses_.end(), [&use](const Use& other) { return replaces(other, use); });
    (known ? left : uses_).push_back(std::move(use));
  }
  return left;
}

bool History::renew(const Touch& touch, const Noted& operation) {
  const ByteRange bytes{touch.low, touch.high};
  Point newest = operation.point;
  const auto replaces = [&](const Use& other) {
    if ((!writes(touch.access) && writes(other.access)) || !bytes.contains(other.where.bytes())) return false;
    newest = std::max(newest, other.point);  // as above
    return true;
  };
  auto place = uses_.begin();
  while (place != uses_.end() && !replaces(*place)) ++place;
  if (place == uses_.end()) return false;
  if (uses_.end() - place > 1) uses_.erase(std::remove_if(place + 1, uses_.end(), replaces), uses_.end());
  place->point = newest;
  place->access = touch.access;
  place->unreported = false;
  place->where = bytes;
  place->site = operation.site;
  place->when = operation.when ? *operation.when : Moment{};
  return true;
}

}  // namespace anabranch
