#pragma once

#include <cstdint>
#include <vector>

#include "anabranch/lane.hpp"
#include "anabranch/layout.hpp"
#include "anabranch/memory.hpp"

namespace anabranch {

// The bytes of a block that an access touches.
class Footprint {
 public:
  // All of a range.
  explicit Footprint(ByteRange bytes) : bytes_(bytes) {}
  // The elements of an array whose first one lies `first` bytes into the block.
  Footprint(std::int64_t first, const Layout& layout);

  const ByteRange& bytes() const noexcept { return bytes_; }
  // Exact for arrays made by slices, see `overlap`; else it may be true of two that share no byte.
  bool overlaps(const Footprint& other) const noexcept;
  // Whether it has every byte of the other; may be false though it does.
  bool contains(const Footprint& other) const noexcept;

 private:
  struct Elements final : RefCounted {
    Elements(std::int64_t first, const Layout& layout) : first(first), layout(layout) {}
    const std::int64_t first;
    const Layout layout;
  };

  ByteRange bytes_;
  Ref<Elements> elements_;  // null: every byte of the range
};

// Which lanes accessed a block of memory, as far as it matters to those that will. Not safe for use by several threads
// at once.
class History {
 public:
  struct Entry {
    Moment when;
    Access access;
    Footprint where;
  };

  // Accesses that conflict with one which `lane` is about to make, and that it is not known to come after. Empty if and
  // only if there is no such access among all that were noted, as far as footprints are exact.
  std::vector<Entry> conflicts(const Lane& lane, Access access, const Footprint& where) const;
  // An operation, the newest of `lane`, makes an access. What whoever comes after this one comes after anyway is
  // forgotten.
  void note(const Lane& lane, Moment when, Access access, const Footprint& where);

  std::size_t size() const noexcept { return entries_.size(); }

 private:
  std::vector<Entry> entries_;
};

}  // namespace anabranch
