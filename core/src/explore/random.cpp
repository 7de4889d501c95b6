#include "random.hpp"

#include <algorithm>
#include <cmath>

namespace anabranch::explore {
namespace {

// Drawn priorities are above all that are given to processes that fall behind.
constexpr std::uint64_t lowest_drawn = std::uint64_t{1} << 32;

}  // namespace

void Random::begin() {
  priorities_.clear();
  changes_.clear();
  lowest_ = lowest_drawn;
  steps_ = 0;
  for (std::size_t i = 1; i < depth; ++i) changes_.push_back(random_() % longest_);
}

std::uint64_t& Random::priority(Process process) {
  if (process >= priorities_.size()) priorities_.resize(process + 1);
  if (priorities_[process] == 0) priorities_[process] = lowest_drawn + random_() / 2;
  return priorities_[process];
}

std::optional<std::size_t> Random::choose(std::span<const StepPointer> steps) {
  const auto highest = [&] {
    std::size_t best = 0;
    for (std::size_t i = 1; i < steps.size(); ++i) {
      if (priority(steps[i]->id.process) > priority(steps[best]->id.process)) best = i;
    }
    return best;
  };
  for (const StepPointer& step : steps) priority(step->id.process);
  if (std::find(changes_.begin(), changes_.end(), steps_) != changes_.end())
    priority(steps[highest()]->id.process) = --lowest_;
  ++steps_;
  return highest();
}

bool Random::end(const Run& run) {
  --left_;
  longest_ = std::max(longest_, run.size());
  processes_ = std::max<std::size_t>(
      processes_, std::count_if(priorities_.begin(), priorities_.end(), [](std::uint64_t one) { return one != 0; }));
  return classes_.insert(run.fingerprint()).second;
}

double Random::bound() const noexcept {
  return 1 / (static_cast<double>(processes_) * std::pow(static_cast<double>(longest_), double{depth - 1}));
}

}  // namespace anabranch::explore
