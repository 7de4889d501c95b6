#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "anabranch/hazard/lane.hpp"
#include "anabranch/memory/layout.hpp"
#include "anabranch/ref.hpp"
#include "anabranch/stream/stream.hpp"
#include "anabranch/trace/site.hpp"

namespace anabranch {

enum class Access : std::uint8_t { read = 1, write = 2, read_write = 3 };

constexpr bool reads(Access access) noexcept { return access != Access::write; }
constexpr bool writes(Access access) noexcept { return access != Access::read; }

// Bytes [low, high) of a block.
struct ByteRange {
  std::size_t low = 0;
  std::size_t high = 0;
  bool overlaps(const ByteRange& other) const noexcept { return std::max(low, other.low) < std::min(high, other.high); }
  bool contains(const ByteRange& other) const noexcept {
    return (other.low >= low && other.high <= high) || other.low == other.high;
  }
  bool operator==(const ByteRange&) const = default;
};

// The bytes of a block that an access uses.
class Footprint {
 public:
  // Every byte of a range.
  Footprint(ByteRange bytes) : bytes_(bytes) {}
  Footprint(std::size_t low, std::size_t high) : bytes_{low, high} {}
  // The elements of an array whose first element is `first` bytes into the block.
  Footprint(std::int64_t first, const Layout& layout);

  const ByteRange& bytes() const noexcept { return bytes_; }
  // Whether the footprint is every byte of its range.
  bool whole() const noexcept { return !elements_; }
  // Of one that is not: the elements, and the offset of the first in the block. As long as a copy of this lives.
  const Layout& layout() const noexcept { return elements_->layout; }
  std::int64_t first() const noexcept { return elements_->first; }
  // Exact for arrays made by slicing (see `overlap`); otherwise it may be true for two that share no byte.
  bool overlaps(const Footprint& other) const noexcept;
  // Whether this contains every byte of `other`. May be false although it does.
  bool contains(const Footprint& other) const noexcept;
  // The same bytes in a block that begins `distance` bytes before this one, without those that lie before that block.
  Footprint moved(std::int64_t distance) const;

 private:
  struct Elements final : RefCounted {
    Elements(std::int64_t first, const Layout& layout) : first(first), layout(layout) {}
    const std::int64_t first;
    const Layout layout;
  };

  ByteRange bytes_;
  Ref<Elements> elements_;  // null: every byte of the range
};

class Storage;

// An access that an operation makes. The caller sets each member: a launch has an array of these, not all of them used.
struct Touch {
  Storage* storage;
  std::size_t low;  // the storage's bytes [low, high) contain the elements
  std::size_t high;
  const Layout* layout;  // null: the elements are all of these bytes
  std::int64_t first;    // with a layout: the offset of the first element in the storage
  Access access;
  bool overwrites;  // writes each of these bytes, whatever they are; not with a layout

  Footprint footprint() const { return layout ? Footprint(first, *layout) : Footprint(low, high); }
};

// An access to some bytes of a block, as a history keeps it.
struct Use {
  Ref<Stream> stream;  // null: the host
  Point point = 0;     // of the operation
  Access access = Access::read;
  bool unreported = false;  // never reported as a race: the memory's arrival on the stream, or an internal readback
  bool open = false;        // by the host, and not ended
  Moment when = {};
  Footprint where = {0, 0};
  Site site = {};
  Moment call = {};  // the host function that made the access: what comes after it comes after the access

  // Whether what comes after `other` comes after this one, since a host function made this one before `other`.
  bool ends_before(const Use& other) const noexcept {
    if (!call.lane || !other.stream || !other.when.lane) return false;
    return other.when.lane == call.lane ? other.when.count >= call.count : other.when.follows(call);
  }
};

// An enqueued operation, with what a history keeps for each of its accesses.
struct Noted {
  Stream& stream;
  Point point;
  const Moment* when;  // null: order is not tracked
  Site site;
  bool exact;  // later accesses can be tested for order even once it is completed
};

// The accesses to a block that still matter to later ones. Not thread-safe: the owner locks.
class History {
 public:
  // The accesses that conflict with a new access by `stream` (null: a host task) and that `before` does not cover. An
  // access without a moment is in nobody's past, but its own stream comes after it. Pruning never hides a conflict: the
  // result is empty exactly if no noted access conflicts, as far as footprints are exact.
  std::vector<Use> conflicts(const Past& before, const Stream* stream, Access access, const Footprint& where) const;
  // Adds an access of the newest operation of a stream or lane, and prunes the accesses that it covers. Without a
  // moment, pruning compares streams alone. Returns whether the history has grown.
  bool note(Use use);
  // Joins the accesses to another block that shares bytes with this one. They may be older than accesses here, so
  // either may replace the other. Returns the pruned accesses, because releasing one may recycle a stream.
  [[nodiscard]] std::vector<Use> join(std::vector<Use> uses);
  // `note` for every byte of a range, if all uses belong to that stream, so that moments need no comparison. Returns
  // whether the access reused an earlier entry; if not, nothing has changed.
  bool renew(const Touch& touch, const Noted& operation);
  // The same for the last noted access, if the stream's clock has not changed since.
  bool repeat(const Touch& touch, const Noted& operation) noexcept {
    if (uses_.empty() || touch.layout) return false;
    Use& use = uses_.back();
    if (use.access != touch.access || use.where.bytes() != ByteRange{touch.low, touch.high} || !use.where.whole()) {
      return false;
    }
    const Moment none;
    const Moment& when = operation.when ? *operation.when : none;
    if (!use.when.alike(when)) return false;
    use.point = std::max(use.point, operation.point);
    use.when.count = when.count;
    use.unreported = false;
    use.site = operation.site;
    return true;
  }

  std::vector<Use>& uses() noexcept { return uses_; }
  const std::vector<Use>& uses() const noexcept { return uses_; }

 private:
  std::vector<Use> uses_;
};

}  // namespace anabranch
