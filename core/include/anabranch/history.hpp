#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "anabranch/lane.hpp"
#include "anabranch/layout.hpp"
#include "anabranch/ref.hpp"
#include "anabranch/site.hpp"
#include "anabranch/stream.hpp"

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

// The bytes of a block that an access touches.
class Footprint {
 public:
  // All of a range.
  Footprint(ByteRange bytes) : bytes_(bytes) {}
  Footprint(std::size_t low, std::size_t high) : bytes_{low, high} {}
  // The elements of an array whose first one lies `first` bytes into the block.
  Footprint(std::int64_t first, const Layout& layout);

  const ByteRange& bytes() const noexcept { return bytes_; }
  // Whether it is every byte of its range.
  bool whole() const noexcept { return !elements_; }
  // Exact for arrays made by slices, see `overlap`; else it may be true of two that share no byte.
  bool overlaps(const Footprint& other) const noexcept;
  // Whether it has every byte of the other; may be false though it does.
  bool contains(const Footprint& other) const noexcept;
  // The same bytes in a block that begins `distance` bytes before this one; without those before it.
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

// An access that an operation is about to make, or has made. Set by whoever makes one, member by member.
struct Touch {
  Storage* storage;
  std::size_t low;  // bytes of the storage that the elements lie in
  std::size_t high;
  const Layout* layout;  // null: the elements are every byte of those
  std::int64_t first;    // else, where in the storage the first element lies
  Access access;

  Footprint footprint() const { return layout ? Footprint(first, *layout) : Footprint(low, high); }
};

// An access to some bytes of a block, to be remembered.
struct Use {
  Ref<Stream> stream;  // null: the host's
  Point point = 0;     // the operation's
  Access access = Access::read;
  bool untold = false;  // nobody is told of it: how the memory came to the stream, a readback on a stream of ours
  Moment when = {};
  Footprint where = {0, 0};
  Site site = {};
};

// An operation that was enqueued, as it is remembered with each of its accesses.
struct Noted {
  Stream& stream;
  Point point;
  const Moment* when;  // null: order is not kept track of
  Site site;
  bool exact;  // who comes after it can be found out also once it is through
};

// Who accessed a block of memory, as far as it matters to those that will. Not safe for use by several threads at once.
class History {
 public:
  // Accesses that conflict with one which `stream`, or a host task if it is null, is about to make after `before`, and
  // that are not in that. Those with no moment nobody's past holds, but their own stream comes after them. Empty if and
  // only if there is no such access among all that were noted, as far as footprints are exact.
  std::vector<Use> conflicts(const Past& before, const Stream* stream, Access access, const Footprint& where) const;
  // An operation, the newest of its stream or of its lane, makes an access. What whoever comes after this one comes
  // after anyway is forgotten. Without a moment that is found out from the streams alone. Whether there is an entry
  // more.
  bool note(Use use);
  // Accesses to another block that has some of the bytes, which may be older than those noted here. Returns what
  // whoever comes after the others comes after anyway; to let go of it may recycle a stream.
  [[nodiscard]] std::vector<Use> join(std::vector<Use> uses);
  // The same as `note` for every byte of a range, where all uses are that stream's, so that none has to be asked for
  // its moment. Whether the access takes an earlier one's entry; else nothing was done.
  bool renew(const Touch& touch, const Noted& operation);
  // The same for the access that was noted last, by a stream that has learned nothing since.
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
    use.untold = false;
    use.site = operation.site;
    return true;
  }

  std::vector<Use>& uses() noexcept { return uses_; }
  const std::vector<Use>& uses() const noexcept { return uses_; }

 private:
  std::vector<Use> uses_;
};

}  // namespace anabranch
