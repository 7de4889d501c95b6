#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "anabranch/ref.hpp"
#include "anabranch/stream/point.hpp"

namespace anabranch {

// A vector clock: for each lane, by number, the count of the last operation that happened before.
//
// A value with copy-on-write entries, so a copy costs one reference count. One clock must not be used by several
// threads at once; copies in several threads may share entries.
class Clock {
 public:
  // The count of the last known operation of the lane; 0 if there is none.
  Point known(std::uint32_t lane) const noexcept;
  bool covers(std::uint32_t lane, Point count) const noexcept { return known(lane) >= count; }

  // Raises one lane's count, or joins another clock. Returns whether the clock changed.
  bool join(std::uint32_t lane, Point count);
  bool join(const Clock& other);

  // Whether the two share their entries, which implies that they are equal.
  bool same(const Clock& other) const noexcept { return entries_ == other.entries_; }

  // The number of lanes with an entry.
  std::size_t size() const noexcept { return entries_ ? entries_->all.size() : 0; }

 private:
  struct Entry {
    std::uint32_t lane;
    Point count;
  };
  // Where entries are in a line, in which each knows more than those before it.
  struct Position {
    std::uint64_t line;
    std::uint64_t place;
  };
  // Sorted by lane. Immutable once shared, but for `continued`.
  //
  // Entries that grow from others continue their line, so two clocks of a line compare without a look at their entries.
  // A host task that has many streams is the use: they all have earlier clocks of it.
  struct Entries final : RefCounted {
    explicit Entries(std::vector<Entry> all) : all(std::move(all)) {}
    // The position of entries that know more than these. Shared ones have one successor in their line; others that grow
    // from them begin lines.
    Position next() noexcept;
    // Requires that nobody else has these entries.
    void move_to(Position next) noexcept;
    bool precedes(const Entries& other) const noexcept {
      return position.line == other.position.line && position.place < other.position.place;
    }
    std::vector<Entry> all;
    Position position{next_line(), 0};
    std::atomic<bool> continued{false};
  };

  static std::uint64_t next_line() noexcept;

  Ref<Entries> entries_;  // null: no entries
};

}  // namespace anabranch
