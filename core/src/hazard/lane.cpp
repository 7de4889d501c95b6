#include "anabranch/hazard/lane.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace anabranch {
namespace {

// The numbers that no moment refers to, each with its last count, and the total count of numbers.
struct Numbers {
  std::mutex mutex;
  std::vector<std::pair<std::uint32_t, Point>> free;
  std::uint32_t count = 0;
};

// The newest snapshots of this thread. Several, because a finalizer may enqueue other operations between an operation's
// snapshot and its `advance`.
struct Snapshots {
  struct Snapshot {
    Lane::Version version = 0;
    Clock clock = {};
  };
  static constexpr std::size_t most = 8;
  Snapshot all[most];
  std::size_t newest = 0;
};

thread_local Snapshots* snapshots = nullptr;

Snapshots& make_snapshots() {
  thread_local Snapshots made;
  snapshots = &made;
  return made;
}

const Clock* find_snapshot(Lane::Version snapshot) noexcept {
  if (!snapshots) return nullptr;
  for (std::size_t age = 0; age < Snapshots::most; ++age) {
    const Snapshots::Snapshot& kept = snapshots->all[(snapshots->newest - age) % Snapshots::most];
    if (kept.version == snapshot) return &kept.clock;
  }
  return nullptr;
}

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

// Any thread, also under a storage's spin lock, whose entries keep moments. The mutex is a leaf: nothing is taken or
// called under it.
LaneNumber::~LaneNumber() {
  Numbers& all = numbers();
  std::lock_guard lock(all.mutex);
  all.free.emplace_back(value, last);
}

// Runs with the destructor of its stream or task, on any thread. Takes no lock: the lane has no other user.
Lane::~Lane() { number_->last = count_; }

Lane::Version Lane::next_version() noexcept {
  // Leaves room for 2^32 changes of each lane.
  static std::atomic<Version> next{1};
  return next.fetch_add(1, std::memory_order_relaxed) << 32;
}

Moment Lane::advance() {
  std::lock_guard guard(lock_);
  change();
  return {number_, ++count_, known_.clock};
}

Moment Lane::advance(Version snapshot) {
  Moment moment;
  advance(moment, snapshot);
  return moment;
}

void Lane::advance(Moment& moment, Version snapshot) {
  std::lock_guard guard(lock_);
  change();
  moment.count = ++count_;
  if (!(moment.lane == number_)) moment.lane = number_;
  const Clock& known = known_at(snapshot);
  if (!moment.clock.same(known)) moment.clock = known;
  if (known_.expecting) [[unlikely]]
    settle(known);
}

Lane::Version Lane::snapshot() {
  const Version current = clock_version_.load(std::memory_order_acquire);
  Snapshots& mine = snapshots ? *snapshots : make_snapshots();
  if (mine.all[mine.newest].version == current) return current;
  mine.newest = (mine.newest + 1) % Snapshots::most;
  Snapshots::Snapshot& newest = mine.all[mine.newest];
  Clock before = std::move(newest.clock);  // released after unlocking
  std::lock_guard guard(lock_);
  newest.clock = known_.clock;
  return newest.version = clock_version_.load(std::memory_order_relaxed);
}

// Requires the lock. Returns the current clock if the thread no longer keeps the snapshot.
const Clock& Lane::known_at(Version snapshot) const noexcept {
  if (snapshot == clock_version_.load(std::memory_order_relaxed)) [[likely]]
    return known_.clock;
  const Clock* known = find_snapshot(snapshot);
  return known ? *known : known_.clock;
}

// Requires the lock. Enqueued operations now come after the expected order in `known`.
void Lane::settle(const Clock& known) {
  if (known.same(known_.clock)) {
    known_.expecting = false;
    known_.settled = Clock();
  } else {
    known_.settled.join(known);
  }
}

void Lane::settle(Version snapshot) {
  std::lock_guard guard(lock_);
  if (!known_.expecting) return;
  settle(known_at(snapshot));
  change();
}

Past Lane::past() const {
  std::lock_guard guard(lock_);
  return {known_.clock, number_->value, count_};
}

Past Lane::settled() const {
  std::lock_guard guard(lock_);
  return {known_.expecting ? known_.settled : known_.clock, number_->value, count_};
}

// Requires the lock. Returns whether the clock changed.
bool Lane::join(Clock& clock, const Clock& other, std::uint32_t lane, Point count) const {
  bool news = clock.join(other);
  if (lane != number_->value) news |= clock.join(lane, count);
  return news;
}

void Lane::follow(const Clock& clock, std::uint32_t lane, Point count) {
  std::lock_guard guard(lock_);
  if (join(known_.clock, clock, lane, count)) change_clock();
  if (known_.expecting && join(known_.settled, clock, lane, count)) change();
}

void Lane::expect(const Past& past) {
  std::lock_guard guard(lock_);
  Clock before = known_.clock;
  if (!join(known_.clock, past.clock, past.lane, past.count)) return;
  change_clock();
  if (!std::exchange(known_.expecting, true)) known_.settled = std::move(before);
}

void Lane::restart() {
  // A number without moments would be freed, and could be taken again at once.
  Ref<LaneNumber> other = number_->unique() ? nullptr : LaneNumber::take();
  std::lock_guard guard(lock_);
  if (other) {
    number_->last = count_;
    std::swap(other, number_);
    count_ = number_->first;
  }
  known_ = Knowledge();
  version_.store(next_version(), std::memory_order_release);
  clock_version_.store(version_.load(std::memory_order_relaxed), std::memory_order_release);
}

}  // namespace anabranch
