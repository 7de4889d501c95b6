#include "anabranch/lane.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace anabranch {
namespace {

// Those that nobody goes by any more, each with where it ended, and how many there are in all.
struct Numbers {
  std::mutex mutex;
  std::vector<std::pair<std::uint32_t, Point>> free;
  std::uint32_t count = 0;
};

// Never destroyed: the last lanes may go after every destructor has run.
Numbers& numbers() {
  static auto* const numbers = new Numbers;
  return *numbers;
}

}  // namespace

Ref<LaneNumber> LaneNumber::take() {
  Numbers& all = numbers();
  std::lock_guard lock(all.mutex);
  std::pair<std::uint32_t, Point> taken{all.count, 0};
  if (all.free.empty()) {
    ++all.count;
  } else {
    taken = all.free.back();
    all.free.pop_back();
  }
  return Ref<LaneNumber>::take(new LaneNumber(taken.first, taken.second));
}

LaneNumber::~LaneNumber() {
  Numbers& all = numbers();
  std::lock_guard lock(all.mutex);
  all.free.emplace_back(value, last);
}

Lane::~Lane() { number_->last = count_; }

Lane::Version Lane::next_version() noexcept {
  // Room for four thousand million changes of each.
  static std::atomic<Version> next{1};
  return next.fetch_add(1, std::memory_order_relaxed) << 32;
}

Moment Lane::advance() {
  std::lock_guard guard(lock_);
  change();
  return {number_, ++count_, clock_};
}

void Lane::advance(Moment& moment) {
  std::lock_guard guard(lock_);
  change();
  moment.count = ++count_;
  if (!(moment.lane == number_)) moment.lane = number_;
  if (!moment.clock.same(clock_)) moment.clock = clock_;
}

Past Lane::past() const {
  std::lock_guard guard(lock_);
  return {clock_, number_->value, count_};
}

void Lane::follow(const Clock& clock, std::uint32_t lane, Point count) {
  std::lock_guard guard(lock_);
  bool news = clock_.learn(clock);
  if (lane != number_->value) news |= clock_.learn(lane, count);
  if (news) change();
}

bool Lane::follows(const Moment& moment) const {
  std::lock_guard guard(lock_);
  return moment.lane == number_ || clock_.covers(moment.lane->value, moment.count);
}

void Lane::unlearn(Clock before) {
  std::lock_guard guard(lock_);
  std::swap(clock_, before);
  change();
}

void Lane::restart() {
  // With no moment of it remembered, the number would be given away and could come right back.
  Ref<LaneNumber> other = number_->unique() ? nullptr : LaneNumber::take();
  std::lock_guard guard(lock_);
  if (other) {
    number_->last = count_;
    std::swap(other, number_);
    count_ = number_->first;
  }
  clock_ = Clock();
  version_.store(next_version(), std::memory_order_release);
}

}  // namespace anabranch
