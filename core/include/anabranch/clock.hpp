#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "anabranch/point.hpp"
#include "anabranch/ref.hpp"

namespace anabranch {

// What is known to have happened before: of each lane, by its number, every operation up to a count.
//
// A value. Copies cost a count, since they share what they hold until one of them learns more. Not safe for use by
// several threads at once, unlike what the copies share.
class Clock {
 public:
  // Up to which operation of the lane; 0: nothing is known of it.
  Point known(std::uint32_t lane) const noexcept;
  bool covers(std::uint32_t lane, Point count) const noexcept { return known(lane) >= count; }

  // Learns of operations of one lane, or of all that another clock knows. Whether that was news.
  bool learn(std::uint32_t lane, Point count);
  bool learn(const Clock& other);

  // Whether the two share what they hold, and so are equal for sure.
  bool same(const Clock& other) const noexcept { return entries_ == other.entries_; }

  // Of how many lanes something is known.
  std::size_t size() const noexcept { return entries_ ? entries_->all.size() : 0; }

 private:
  struct Entry {
    std::uint32_t lane;
    Point count;
  };
  // In the order of the lanes. Not changed any more once it is shared.
  struct Entries final : RefCounted {
    explicit Entries(std::vector<Entry> all) : all(std::move(all)) {}
    std::vector<Entry> all;
  };

  Ref<Entries> entries_;  // null: nothing is known
};

}  // namespace anabranch
