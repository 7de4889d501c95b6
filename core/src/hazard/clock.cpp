#include "anabranch/hazard/clock.hpp"

#include <algorithm>

namespace anabranch {

Point Clock::known(std::uint32_t lane) const noexcept {
  if (!entries_) return 0;
  const std::vector<Entry>& all = entries_->all;
  const auto found = std::lower_bound(all.begin(), all.end(), lane,
                                      [](const Entry& entry, std::uint32_t number) { return entry.lane < number; });
  return found != all.end() && found->lane == lane ? found->count : 0;
}

bool Clock::join(std::uint32_t lane, Point count) {
  if (known(lane) >= count) return false;
  if (!entries_) {
    entries_ = make_ref<Entries>(std::vector<Entry>{{lane, count}});
    return true;
  }
  if (!entries_->unique()) entries_ = make_ref<Entries>(entries_->all);
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
  entries_ = make_ref<Entries>(std::move(both));
  return true;
}

}  // namespace anabranch
