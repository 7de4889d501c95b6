#include "dpor.hpp"

#include <algorithm>
#include <utility>

namespace anabranch::explore {
namespace {

using Steps = Run::Steps;

// Where the step's process occurs first, or the end.
Steps::const_iterator find_process(const Steps& steps, const Step& step) {
  return std::find_if(steps.begin(), steps.end(),
                      [&](const StepPointer* other) { return (*other)->id.process == step.id.process; });
}

// Some run that begins with the step is of the same class as one that begins with `steps`: the step is the first of its
// process among them and conflicts with none before it, or it is none of them and conflicts with none.
//
// Order that the program makes needs no look: a step that could happen first comes after none of them that way.
bool may_begin(const Step& step, const Steps& steps) {
  const auto own = find_process(steps, step);
  return std::none_of(steps.begin(), own, [&](const StepPointer* other) { return step.conflicts(**other); });
}

void insert(std::vector<Wakeup>& tree, Steps& steps) {
  std::vector<Wakeup>* place = &tree;
  while (true) {
    const auto branch =
        std::find_if(place->begin(), place->end(), [&](const Wakeup& child) { return may_begin(*child.step, steps); });
    if (branch == place->end()) break;
    if (const auto own = find_process(steps, *branch->step); own != steps.end()) steps.erase(own);
    if (branch->then.empty()) return;  // what is run from there on covers these steps
    place = &branch->then;
  }
  for (const StepPointer* step : steps) {
    place->push_back({*step});
    place = &place->back().then;
  }
}

}  // namespace

void Dpor::begin() {
  depth_ = 0;
  redundant_ = diverged_ = false;
}

// The same choice as in the run before, for the same reason.
std::optional<std::size_t> Dpor::repeat(std::span<const StepPointer> steps) {
  Level& level = levels_[depth_++];
  const auto found =
      std::find_if(steps.begin(), steps.end(), [&](const StepPointer& step) { return step->same(*level.chosen); });
  if (found == steps.end()) {
    diverged_ = true;
    return std::nullopt;
  }
  level.chosen = *found;
  return found - steps.begin();
}

void Dpor::add_level() {
  Level level;
  if (!levels_.empty()) {
    const Level& before = levels_.back();
    for (const StepPointer& step : before.asleep) {
      if (!step->conflicts(*before.chosen)) level.asleep.push_back(step);
    }
  }
  level.tree = std::exchange(next_, {});
  levels_.push_back(std::move(level));
}

std::optional<std::size_t> Dpor::choose(std::span<const StepPointer> steps) {
  if (redundant_) return 0;
  if (depth_ < levels_.size()) return repeat(steps);
  add_level();
  Level& level = levels_.back();
  if (!level.tree.empty()) {
    level.chosen = std::move(level.tree.front().step);
    next_ = std::move(level.tree.front().then);
    level.tree.erase(level.tree.begin());
    return repeat(steps);
  }
  const auto awake = std::find_if(steps.begin(), steps.end(), [&](const StepPointer& step) {
    return std::none_of(level.asleep.begin(), level.asleep.end(),
                        [&](const StepPointer& other) { return other->id == step->id; });
  });
  if (awake == steps.end()) {
    levels_.pop_back();
    redundant_ = true;
    return 0;
  }
  level.chosen = *awake;
  ++depth_;
  return awake - steps.begin();
}

// Plans a run that begins like this one up to the first step of the pair and then reverses the pair.
//
// Also of a pair that an earlier run had, if both of its steps are before the level where this run diverged: what can
// begin that run's reversal need not be able to begin this one's, of which other steps are a part.
void Dpor::plan(const Run& run, const Reversible& pair) {
  Level& level = levels_[pair.first];
  run.reverse(pair, steps_);
  const bool done = std::any_of(level.asleep.begin(), level.asleep.end(),
                                [&](const StepPointer& step) { return may_begin(*step, steps_); });
  if (!done) insert(level.tree, steps_);
}

bool Dpor::end(const Run& run) {
  const bool fresh = !redundant_ && !diverged_;
  if (fresh) {
    for (const Reversible& pair : run.reversible()) plan(run, pair);
  }
  back_up();
  return fresh;
}

// To the last state with something left to run from it.
void Dpor::back_up() {
  while (!levels_.empty() && levels_.back().tree.empty()) levels_.pop_back();
  more_ = !levels_.empty();
  if (!more_) return;
  Level& level = levels_.back();
  level.asleep.push_back(std::move(level.chosen));
  level.chosen = std::move(level.tree.front().step);
  next_ = std::move(level.tree.front().then);
  level.tree.erase(level.tree.begin());
}

}  // namespace anabranch::explore
