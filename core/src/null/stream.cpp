#include "stream.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "anabranch/backend.hpp"

namespace anabranch::null {
namespace {

// The state that null streams of all devices share, because they may wait for each other.
struct World {
  std::mutex mutex;
  std::condition_variable moved;
  std::vector<NullStream*> streams;
  std::uintptr_t last_handle = 2;
  std::int64_t clock = 0;
  bool running = false;
  bool changed = false;
};

World& world() {
  static World* world = new World;
  return *world;
}

constexpr std::int64_t tick_nanoseconds = 1000;

}  // namespace

NullStream::NullStream(Backend& backend, const StreamOptions& options) : Stream(backend, options) {
  std::lock_guard lock(world().mutex);
  switch (options.role) {
    case StreamRole::legacy:
      handle_ = 1;
      break;
    case StreamRole::per_thread:
      handle_ = 2;
      break;
    case StreamRole::created:
      handle_ = ++world().last_handle;
      break;
  }
  world().streams.push_back(this);
}

// Runs on any thread, with no lock held. Takes the lanes' lock, then the world's. `living` can no longer retain the
// stream.
NullStream::~NullStream() {
  backend_.legacy_lanes().leave(*this);
  std::lock_guard lock(world().mutex);
  std::erase(world().streams, this);
}

std::uintptr_t NullStream::handle() const noexcept { return handle_; }

Activity NullStream::activity() const noexcept {
  std::lock_guard lock(world().mutex);
  return {completed_, 0};
}

std::vector<Ref<NullStream>> NullStream::living(const Backend& backend) {
  std::vector<Ref<NullStream>> living;
  std::lock_guard lock(world().mutex);
  for (NullStream* stream : world().streams) {
    if (&stream->backend() == &backend && stream->try_retain()) living.push_back(Ref<NullStream>::take(stream));
  }
  return living;
}

Point NullStream::append(Operation operation) {
  std::lock_guard lock(world().mutex);
  const Point point = issued() + 1;
  operation.point = point;
  if (operations_.empty()) retain();
  operations_.push_back(std::move(operation));
  issued_.store(point, std::memory_order_release);
  return point;
}

bool NullStream::reached(Point point) const {
  std::lock_guard lock(world().mutex);
  if (completed_ < point) return false;
  if (failed(point)) throw AsyncError(failure_);
  return true;
}

bool NullStream::synchronize(Point point, std::chrono::nanoseconds timeout) const {
  {
    std::unique_lock lock(world().mutex);
    const auto limit = std::min<std::chrono::nanoseconds>(timeout, std::chrono::hours(1));
    world().moved.wait_for(lock, limit, [&] { return completed_ >= point; });
  }
  return reached(point);
}

bool NullStream::add_waiter(Waiter& waiter, Point point) {
  std::lock_guard lock(world().mutex);
  if (completed_ >= point) return false;
  waiters_.add(waiter, point);
  return true;
}

void NullStream::pass(Point point) {
  {
    std::lock_guard lock(world().mutex);
    for (Operation& operation : operations_) operation.held = operation.held && operation.point > point;
  }
  run_ready();
}

void NullStream::fail(Ref<Failure> failure) {
  {
    std::lock_guard lock(world().mutex);
    if (failure_) return;
    failure_ = std::move(failure);
    failed_at_ = completed_ + 1;
  }
  run_ready();
}

void NullStream::run_ready() noexcept {
  World& all = world();
  std::unique_lock lock(all.mutex);
  all.changed = true;
  if (all.running) return;
  all.running = true;
  while (all.changed) {
    all.changed = false;
    Effects effects;
    for (bool moved = true; moved;) {
      moved = false;
      for (NullStream* stream : all.streams) {
        while (stream->step(effects)) moved = true;
      }
    }
    all.moved.notify_all();
    lock.unlock();
    for (const auto& effect : effects) effect();
    effects.clear();
    lock.lock();
  }
  all.running = false;
}

// Completes the next operation if possible.
bool NullStream::step(Effects& effects) {
  if (operations_.empty()) return false;
  Operation& next = operations_.front();
  Ref<Failure> failure;
  if (failed(next.point)) {
    if (next.pending && !next.entered) {
      effects.push_back([pending = next.pending, was = failure_] { pending->skip(was); });
    }
  } else if (next.held) {
    return false;
  } else if (next.target) {
    if (next.target->completed_ < next.until) return false;
    if (next.target->failed(next.until)) failure = next.target->failure_;
  } else if (next.pending) {
    if (!std::exchange(next.entered, true) && next.pending->enter([](void*) noexcept { run_ready(); }, nullptr)) {
      effects.push_back([pending = next.pending] { pending->start(); });
    }
    if (!next.pending->completed()) return false;
    failure = next.pending->failure();
  } else if (next.stamp) {
    next.stamp->nanoseconds = world().clock += tick_nanoseconds;
  }
  if (failure) {
    failure_ = std::move(failure);
    failed_at_ = next.point;
  }
  completed_ = next.point;
  if (Waiter* woken = waiters_.take(completed_)) {
    effects.push_back([woken, was = failure_] { WaiterList::wake(woken, was); });
  }
  // The effects release the operation's references, because that may destroy a stream.
  effects.push_back([over = std::move(next)] {});
  operations_.pop_front();
  if (operations_.empty()) effects.push_back([own = Ref<NullStream>::take(this)] {});
  return true;
}

}  // namespace anabranch::null
