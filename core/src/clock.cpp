#include "anabranch/clock.hpp"

#include <algorithm>

namespace anabranch {

Point Clock::known(std::uint32_t stream) const noexcept {
  if (!entries_) return 0;
  const std::vector<Entry>& all = entries_->all;
  const auto found = std::lower_bound(all.begin(), all.end(), stream,
                                      [](const Entry& entry, std::uint32_t number) { return entry.stream < number; });
  return found != all.end() && found->stream == stream ? found->point : 0;
}

bool Clock::learn(std::uint32_t stream, Point point) {
  if (known(stream) >= point) return false;
  if (!entries_) {
    entries_ = make_ref<Entries>(std::vector<Entry>{{stream, point}});
    return true;
  }
  if (!entries_->unique()) entries_ = make_ref<Entries>(entries_->all);
  std::vector<Entry>& all = entries_->all;
  const auto place = std::lower_bound(all.begin(), all.end(), stream,
                                      [](const Entry& entry, std::uint32_t number) { return entry.stream < number; });
  if (place != all.end() && place->stream == stream) {
    place->point = point;
  } else {
    all.insert(place, {stream, point});
  }
  return true;
}

bool Clock::learn(const Clock& other) {
  if (!other.entries_ || other.entries_ == entries_) return false;
  if (!entries_) {
    entries_ = other.entries_;
    return true;
  }
  // Most often one of the two knows all that the other does, and there is nothing to build.
  const std::vector<Entry>& ours = entries_->all;
  const std::vector<Entry>& theirs = other.entries_->all;
  std::size_t streams = 0;
  bool news = false;
  bool more = false;
  for (auto a = ours.begin(), b = theirs.begin(); a != ours.end() || b != theirs.end(); ++streams) {
    const bool only_ours = b == theirs.end() || (a != ours.end() && a->stream < b->stream);
    const bool only_theirs = a == ours.end() || (b != theirs.end() && b->stream < a->stream);
    more |= only_ours || (!only_theirs && a->point > b->point);
    news |= only_theirs || (!only_ours && b->point > a->point);
    a += !only_theirs;
    b += !only_ours;
  }
  if (!news) return false;
  if (!more) {
    entries_ = other.entries_;
    return true;
  }
  std::vector<Entry> both;
  both.reserve(streams);
  for (auto a = ours.begin(), b = theirs.begin(); a != ours.end() || b != theirs.end();) {
    if (b == theirs.end() || (a != ours.end() && a->stream < b->stream)) {
      both.push_back(*a++);
    } else if (a == ours.end() || b->stream < a->stream) {
      both.push_back(*b++);
    } else {
      both.push_back({a->stream, std::max(a++->point, b++->point)});
    }
  }
  entries_ = make_ref<Entries>(std::move(both));
  return true;
}

}  // namespace anabranch
