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
  // Returns the index of one of the steps; there is at least one, and they are in program order. Returns none if the
  // run has diverged from an earlier one with the same choices; the caller then chooses the remaining steps itself.
  virtual std::optional<std::size_t> choose(std::span<const StepPointer> steps) = 0;
  // The run is over. Returns whether its class is new.
  virtual bool end(const Run& run) = 0;
  // How many choices of a given schedule the run has not come to.
  virtual std::size_t left() const { return 0; }
  // Whether there is another run.
  virtual bool more() const = 0;
};

}  // namespace anabranch::explore
