#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chooser.hpp"

namespace anabranch::explore {

// The choices of one run. Most of the time the first of the possible steps is taken; the text lists the exceptions.
class Schedule {
 public:
  void clear() noexcept;
  // The next choice was made: the step at `choice`, of several.
  void add(std::size_t choice);
  // Short and printable: a version, the number of choices, and each exception with how many choices are skipped before.
  std::string text() const;
  // Throws Error(value), which names what is wrong.
  static Schedule parse(const std::string& text);

  // The choice at a position; 0 past the end.
  std::size_t at(std::size_t position) const noexcept;
  std::size_t length() const noexcept { return length_; }

 private:
  struct Exception {
    std::size_t position;
    std::size_t choice;
  };
  std::size_t length_ = 0;
  std::vector<Exception> exceptions_;
};

// Runs one schedule, once.
class Replay final : public Chooser {
 public:
  explicit Replay(Schedule schedule) : schedule_(std::move(schedule)) {}
  void begin() override { position_ = 0; }
  std::optional<std::size_t> choose(std::span<const StepPointer> steps) override;
  bool end(const Run& run) override;
  std::size_t left() const override { return schedule_.length() - position_; }
  bool more() const override { return !over_; }

 private:
  Schedule schedule_;
  std::size_t position_ = 0;
  bool over_ = false;
};

}  // namespace anabranch::explore
