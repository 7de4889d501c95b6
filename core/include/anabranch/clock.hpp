#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "anabranch/stream.hpp"

namespace anabranch {

// What is known to have happened before: of each stream every operation up to a point. Streams go by numbers, each that
// of one record, whose points never start again.
//
// A value. Copies cost a count, since they share what they hold until one of them learns more. Not safe for use by
// several threads at once, unlike what the copies share.
class Clock {
 public:
  // Up to which point of the stream; 0: nothing is known of it.
  Point known(std::uint32_t stream) const noexcept;
  bool covers(std::uint32_t stream, Point point) const noexcept { return known(stream) >= point; }

  // Learns of operations of one stream, or of all that another clock knows. Whether that was news.
  bool learn(std::uint32_t stream, Point point);
  bool learn(const Clock& other);

  // Of how many streams something is known.
  std::size_t size() const noexcept { return entries_ ? entries_->all.size() : 0; }

 private:
  struct Entry {
    std::uint32_t stream;
    Point point;
  };
  // In the order of the streams. Not changed any more once it is shared.
  struct Entries final : RefCounted {
    explicit Entries(std::vector<Entry> all) : all(std::move(all)) {}
    std::vector<Entry> all;
  };

  Ref<Entries> entries_;  // null: nothing is known
};

}  // namespace anabranch
