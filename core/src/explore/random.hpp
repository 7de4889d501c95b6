#pragma once

#include <cstdint>
#include <random>
#include <unordered_set>
#include <vector>

#include "chooser.hpp"

namespace anabranch::explore {

// Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte, ASPLOS 2010): each process has a
// random priority, the first possible step of the highest one is taken, and at `depth - 1` random points the process
// that would go on falls behind all others. Of a program with n processes and k steps, a run finds a bug of that depth
// with a probability of at least 1 / (n k^(depth - 1)).
class Random final : public Chooser {
 public:
  static constexpr std::size_t depth = 3;

  Random(std::uint64_t runs, std::uint64_t seed) : left_(runs), random_(seed) {}
  void begin() override;
  std::optional<std::size_t> choose(std::span<const StepPointer> steps) override;
  bool end(const Run& run) override;
  bool more() const override { return left_ > 0; }
  // For the longest run so far.
  double bound() const noexcept;

 private:
  std::uint64_t& priority(Process process);

  std::uint64_t left_;
  std::mt19937_64 random_;
  std::vector<std::uint64_t> priorities_;  // by process; 0: not yet drawn
  std::vector<std::size_t> changes_;       // the steps at which the process falls behind
  std::uint64_t lowest_ = 0;               // the priorities of those that fell behind, downwards
  std::size_t steps_ = 0;                  // of the current run
  std::size_t longest_ = 1;
  std::size_t processes_ = 1;
  std::unordered_set<std::uint64_t> classes_;  // fingerprints
};

}  // namespace anabranch::explore
