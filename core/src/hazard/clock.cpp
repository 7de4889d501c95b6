#include "anabranch/hazard/clock.hpp"

#include <algorithm>
#include <atomic>

namespace anabranch {

Point Clock::known(std::uint32_t lane) const noexcept {
  if (!entries_) return 0;
  const std::vector<Entry>& all = entries_->all;
  const auto found = std::lower_bound(all.begin(), all.end(), lane,
                                      [](const Entry& entry, std::uint32_t number) { return entry.lane < number; });
  return found != all.end() && found->lane == lane ? found->count : 0;
}

std::uint64_t Clock::next_line() noexcept {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

Clock::Position Clock::Entries::next() noexcept {
  // Nothing claims to know all of the last of a line, so it may grow in place.
  if (unique() && !continued.load(std::memory_order_relaxed)) return position;
  if (continued.exchange(true, std::memory_order_relaxed)) return {next_line(), 0};
  return {position.line, position.place + 1};
}

void Clock::Entries::move_to(Position next) noexcept {
  position = next;
  continued.store(false, std::memory_order_relaxed);
}

bool Clock::join(std::uint32_t lane, Point count) {
  if (known(lane) >= count) return false;
  if (!entries_) {
    entries_ = make_ref<Entries>(std::vector<Entry>{{lane, count}});
    return true;
  }
  const Position next = entries_->next();
  if (!entries_->unique()) entries_ = make_ref<Entries>(entries_->all);
  entries_->move_to(next);
  std::vector<Entry>& all = entries_->all;
  const auto place = std::lower_bound(all.begin(), all.end(), lane,
                                      [](const Entry& entry, std::uint32_t number) { return entry.lane < number; });
  if (place != all.end() && place->lane == lane) {
    place->count = count;
  } else {
    all.insert(place, {lane, count});
  }
  return true;
}

bool Clock::join(const Clock& other) {
  if (!other.entries_ || other.entries_ == entries_) return false;
  if (!entries_) {
    entries_ = other.entries_;
    return true;
  }
  if (other.entries_->precedes(*entries_)) return false;
  if (entries_->precedes(*other.entries_)) {
    entries_ = other.entries_;
    return true;
  }
  // Most often one of the two knows all that the other does, and there is nothing to build.
  const std::vector<Entry>& ours = entries_->all;
  const std::vector<Entry>& theirs = other.entries_->all;
  std::size_t lanes = 0;
  bool news = false;
  bool more = false;
  for (auto a = ours.begin(), b = theirs.begin(); a != ours.end() || b != theirs.end(); ++lanes) {
    const bool only_ours = b == theirs.end() || (a != ours.end() && a->lane < b->lane);
    const bool only_theirs = a == ours.end() || (b != theirs.end() && b->lane < a->lane);
    more |= only_ours || (!only_theirs && a->count > b->count);
    news |= only_theirs || (!only_ours && b->count > a->count);
    a += !only_theirs;
    b += !only_ours;
  }
  if (!news) return false;
  if (!more) {
    entries_ = other.entries_;
    return true;
  }
  std::vector<Entry> both;
  both.reserve(lanes);
  for (auto a = ours.begin(), b = theirs.begin(); a != ours.end() || b != theirs.end();) {
    if (b == theirs.end() || (a != ours.end() && a->lane < b->lane)) {
      both.push_back(*a++);
    } else if (a == ours.end() || b->lane < a->lane) {
      both.push_back(*b++);
    } else {
      both.push_back({a->lane, std::max(a++->count, b++->count)});
    }
  }
  const Position next = entries_->next();
  entries_ = make_ref<Entries>(std::move(both));
  entries_->move_to(next);
  return true;
}

}  // namespace anabranch
