#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "step.hpp"

namespace anabranch::explore {

// Two events in conflict with nothing between them: the second could have come first.
struct Reversible {
  std::size_t first;
  std::size_t second;
};

// The events of one run in the order in which they happened, and what each had to come after.
class Run {
 public:
  using Steps = std::vector<const StepPointer*>;

  void clear();
  // Adds the next event. `before`: what comes before it by the program's own order; it may name only earlier events.
  // `with`: what comes before it as well if what it conflicts with does.
  void add(StepPointer step, const Reach& before, const Reach& with = {});

  std::size_t size() const noexcept { return events_.size(); }
  const StepPointer& step(std::size_t number) const noexcept { return events_[number].step; }
  // Everything up to that event, which has happened.
  const Reach& reach(EventId event) const { return events_[number_of(event)].reach; }
  bool happened(EventId event) const noexcept;
  // In the order of their second events.
  const std::vector<Reversible>& reversible() const noexcept { return reversible_; }
  // Fills `steps` with the events after the first one of the pair that do not come after it, and then the second. They
  // are valid until the run changes.
  void reverse(const Reversible& pair, Steps& steps) const;
  // Tells classes apart: what each event comes after determines the class, in whatever order the events happened.
  std::uint64_t fingerprint() const noexcept;
  // Whether the later event comes after the earlier one in every run of this class.
  bool precedes(std::size_t earlier, std::size_t later) const noexcept {
    return events_[later].reach.covers(events_[earlier].step->id);
  }

 private:
  struct Event {
    StepPointer step;
    Reach reach;
  };
  struct PastUse {
    std::size_t event;
    Access access;
    Footprint where;
  };

  std::size_t number_of(EventId event) const { return numbers_[event.process][event.index - 1]; }
  void find_conflicts(const Step& step);

  std::vector<Event> events_;
  std::vector<std::vector<std::size_t>> numbers_;  // by process and index
  std::vector<std::vector<PastUse>> uses_;         // by block; those that a later write replaces are left out
  std::unordered_map<std::uint64_t, std::vector<std::size_t>> queries_;  // by the event that they asked about
  std::vector<Reversible> reversible_;
  std::vector<std::size_t> conflicts_;  // of the newest event
};

}  // namespace anabranch::explore
