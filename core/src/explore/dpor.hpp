#pragma once

#include <memory>
#include <vector>

#include "chooser.hpp"
#include "run.hpp"

namespace anabranch::explore {

// Sequences of steps to run from one state, as a tree whose children are in the order of exploration.
struct Wakeup {
  StepPointer step;  // null in a root
  std::vector<Wakeup> then = {};
};

// One run for each class of runs that differ in the order of two conflicting steps: optimal dynamic partial-order
// reduction with source sets and wakeup trees (Abdulla, Aronis, Jonsson, Sagonas, POPL 2014, algorithm 2).
//
// A state is known by the choices that led to it. For each state on the way of the newest run there is a level: the
// step chosen there, the steps that need not be run first there any more, and the sequences that are still to be run.
class Dpor final : public Chooser {
 public:
  void begin() override;
  std::optional<std::size_t> choose(std::span<const StepPointer> steps) override;
  bool end(const Run& run) override;
  bool more() const override { return more_; }

 private:
  struct Level {
    StepPointer chosen;
    std::vector<StepPointer> asleep;
    std::vector<Wakeup> tree;  // without the branch that begins with the chosen step
  };

  std::optional<std::size_t> repeat(std::span<const StepPointer> steps);
  void add_level();
  void plan(const Run& run, const Reversible& pair);
  void back_up();

  std::vector<Level> levels_;
  std::vector<Wakeup> next_;  // the tree of the level after the newest
  std::size_t depth_ = 0;     // in the current run
  Run::Steps steps_;          // of the pair that is being planned
  bool redundant_ = false;    // everything that could happen was asleep
  bool diverged_ = false;     // a choice was impossible, after which there are no levels
  bool more_ = true;
};

}  // namespace anabranch::explore
