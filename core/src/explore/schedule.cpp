#include "schedule.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "anabranch/error.hpp"

namespace anabranch::explore {
namespace {

constexpr std::string_view version = "x1";
constexpr int base = 36;

void put(std::string& text, std::size_t number) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, number, base).ptr;
  text.append(digits, end);
}

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw Error(ErrorKind::value, "'" + text + "' is not a schedule: " + why);
}

std::size_t number(const std::string& text, std::string_view part) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value, base);
  if (error != std::errc() || end != part.data() + part.size())
    refuse(text, "'" + std::string(part) + "' is no number in base 36");
  return value;
}

std::string_view take(std::string_view& rest, char until) {
  const std::size_t end = std::min(rest.find(until), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

}  // namespace

void Schedule::clear() noexcept {
  length_ = 0;
  exceptions_.clear();
}

void Schedule::add(std::size_t choice) {
  if (choice != 0) exceptions_.push_back({length_, choice});
  ++length_;
}

std::string Schedule::text() const {
  std::string text(version);
  text += '-';
  put(text, length_);
  std::size_t position = 0;
  for (const Exception& exception : exceptions_) {
    text += '-';
    put(text, exception.position - position);
    text += '.';
    put(text, exception.choice);
    position = exception.position + 1;
  }
  return text;
}

Schedule Schedule::parse(const std::string& text) {
  std::string_view rest = text;
  if (const std::string_view found = take(rest, '-'); found != version) {
    refuse(text, "it begins with '" + std::string(found) + "', not with the version '" + std::string(version) + "'");
  }
  if (rest.empty()) refuse(text, "the number of its choices is missing");
  Schedule schedule;
  const std::size_t length = number(text, take(rest, '-'));
  while (!rest.empty()) {
    std::string_view part = take(rest, '-');
    const std::size_t skipped = number(text, take(part, '.'));
    const std::size_t choice = number(text, part);
    if (choice == 0) refuse(text, "a choice that is listed is not the first");
    if (skipped > length || schedule.length_ + skipped >= length) refuse(text, "it lists more choices than it has");
    schedule.length_ += skipped;
    schedule.add(choice);
  }
  schedule.length_ = length;
  return schedule;
}

std::size_t Schedule::at(std::size_t position) const noexcept {
  const auto found = std::lower_bound(exceptions_.begin(), exceptions_.end(), position,
                                      [](const Exception& one, std::size_t value) { return one.position < value; });
  return found != exceptions_.end() && found->position == position ? found->choice : 0;
}

std::optional<std::size_t> Replay::choose(std::span<const StepPointer> steps) {
  if (steps.size() == 1) return 0;
  if (position_ == schedule_.length()) return std::nullopt;
  const std::size_t choice = schedule_.at(position_++);
  return choice < steps.size() ? std::optional(choice) : std::nullopt;
}

bool Replay::end(const Run&) {
  over_ = true;
  return true;
}

}  // namespace anabranch::explore
