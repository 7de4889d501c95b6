#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "run.hpp"

namespace anabranch::explore {

// Decides which of the possible steps happens next, in one run after another.
class Chooser {
 public:
  virtual ~Chooser() = default;
  virtual void begin() = 0;
  // The index of one of the steps, at least one, which are in the order of the program. None: the run has diverged from
  // an earlier one with the same choices, and the caller ends it with choices of its own.
  virtual std::optional<std::size_t> choose(std::span<const StepPointer> steps) = 0;
  // The run is over. Returns whether its class is new.
  virtual bool end(const Run& run) = 0;
  // Whether there is another run.
  virtual bool more() const = 0;
};

}  // namespace anabranch::explore
