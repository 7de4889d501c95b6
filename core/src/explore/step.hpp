#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "anabranch/hazard/history.hpp"

namespace anabranch::explore {

// A process is a stream, a node of a graph, or a host thread. Its number is the same in every run.
using Process = std::uint32_t;

// The events of a process count from 1.
struct EventId {
  Process process = 0;
  std::uint32_t index = 0;  // 0: no event
  bool operator==(const EventId&) const = default;
  std::uint64_t key() const noexcept { return std::uint64_t{process} << 32 | index; }
};

struct MemoryUse {
  std::uint32_t block = 0;  // the same block has the same number in every run
  Access access = Access::read;
  Footprint where = {0, 0};
};

// One event of a program: an operation, or a query by the host. Immutable once it may be chosen.
struct Step {
  EventId id;
  EventId asked = {};  // for a query: the operation whose completion it tests
  std::vector<MemoryUse> uses = {};

  // Whether the order of the two steps can matter where the program does not order them.
  bool conflicts(const Step& other) const noexcept;
  // Whether the two steps are indistinguishable to exploration.
  bool same(const Step& other) const noexcept;
};
using StepPointer = std::shared_ptr<const Step>;

// For each process, how many of its events come before a moment.
class Reach {
 public:
  bool covers(EventId event) const noexcept {
    return event.process < counts_.size() && counts_[event.process] >= event.index;
  }
  void learn(EventId event) {
    if (event.process >= counts_.size()) counts_.resize(event.process + 1);
    counts_[event.process] = std::max(counts_[event.process], event.index);
  }
  void learn(const Reach& other) {
    if (other.counts_.size() > counts_.size()) counts_.resize(other.counts_.size());
    for (std::size_t i = 0; i < other.counts_.size(); ++i) counts_[i] = std::max(counts_[i], other.counts_[i]);
  }
  void clear() noexcept { counts_.clear(); }
  // The same for equal ones, and hardly ever for others.
  std::uint64_t fingerprint(EventId event) const noexcept {
    std::uint64_t value = mix(event.key());
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] != 0) value = mix(value ^ (std::uint64_t{i} << 32 | counts_[i]));
    }
    return value;
  }

 private:
  // The end of splitmix64 (Steele, Lea and Flood 2014).
  static constexpr std::uint64_t mix(std::uint64_t bits) noexcept {
    bits += 0x9e3779b97f4a7c15;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
    return bits ^ bits >> 31;
  }

  std::vector<std::uint32_t> counts_;
};

}  // namespace anabranch::explore
