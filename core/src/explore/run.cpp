#include "run.hpp"

#include <functional>
#include <utility>

namespace anabranch::explore {
void Run::clear() {
  events_.clear();
  for (auto& numbers : numbers_) numbers.clear();
  for (auto& uses : uses_) uses.clear();
  queries_.clear();
  reversible_.clear();
}

bool Run::happened(EventId event) const noexcept {
  return event.process < numbers_.size() && event.index <= numbers_[event.process].size();
}

// Fills `conflicts_`, newest first.
void Run::find_conflicts(const Step& step) {
  conflicts_.clear();
  for (const MemoryUse& use : step.uses) {
    if (use.block >= uses_.size()) uses_.resize(use.block + 1);
    for (const PastUse& past : uses_[use.block]) {
      if ((writes(use.access) || writes(past.access)) && use.where.overlaps(past.where))
        conflicts_.push_back(past.event);
    }
  }
  if (step.asked.index != 0 && happened(step.asked)) conflicts_.push_back(number_of(step.asked));
  if (const auto asked = queries_.find(step.id.key()); asked != queries_.end())
    conflicts_.insert(conflicts_.end(), asked->second.begin(), asked->second.end());
  std::sort(conflicts_.begin(), conflicts_.end(), std::greater<>());
}

void Run::add(StepPointer step, const Reach& before, const Reach& with) {
  const std::size_t number = events_.size();
  const EventId id = step->id;
  find_conflicts(*step);
  Event event{std::move(step), before};
  // From the newest: what a newer one comes after is in order with this event through that one.
  for (const std::size_t other : conflicts_) {
    if (event.reach.covers(events_[other].step->id)) continue;
    reversible_.push_back({other, number});
    event.reach.learn(events_[other].reach);
  }
  event.reach.learn(with);
  event.reach.learn(id);
  for (const MemoryUse& use : event.step->uses) {
    auto& past = uses_[use.block];
    // Whatever conflicts with a use that this write contains conflicts with this write, too.
    if (writes(use.access)) std::erase_if(past, [&](const PastUse& old) { return use.where.contains(old.where); });
    past.push_back({number, use.access, use.where});
  }
  if (event.step->asked.index != 0) queries_[event.step->asked.key()].push_back(number);
  if (id.process >= numbers_.size()) numbers_.resize(id.process + 1);
  numbers_[id.process].push_back(number);
  events_.push_back(std::move(event));
}

std::uint64_t Run::fingerprint() const noexcept {
  std::uint64_t sum = 0;
  for (const Event& event : events_) sum += event.reach.fingerprint(event.step->id);
  return sum;
}

void Run::reverse(const Reversible& pair, Steps& steps) const {
  steps.clear();
  for (std::size_t i = pair.first + 1; i < events_.size(); ++i) {
    if (!precedes(pair.first, i)) steps.push_back(&events_[i].step);
  }
  steps.push_back(&events_[pair.second].step);
}

}  // namespace anabranch::explore
