// How a stream holds work back, and goes on with it.
#include <algorithm>
#include <iterator>

#include "backend.hpp"

namespace anabranch::cuda {

Point CudaStream::hold(std::unique_ptr<Operation> operation) {
  Point point = 0;
  bool began = false;
  {
    std::lock_guard lock(mutex_);
    rejoin();
    const bool was_held = holding();
    if (!was_held) {
      if (owner_ != 0) rejoin_ = record_end();
      begin_holding();
      submitted_.store(issued_.load());
      began = true;
    }
    add_legacy_waits();
    operation->point_ = point = next_point();
    queue_.push_back(std::move(operation));
  }
  if (began) device().poller().ready(*this);
  return point;
}

// Another thread began to hold while this one went straight to the driver, and the point came after its beginning. What
// waits for the point must not wait for held operations that come after it.
void CudaStream::note_direct(Point point) noexcept {
  std::vector<Follower> ready;
  bool submitted = false;
  {
    std::lock_guard lock(mutex_);
    add_direct(point);
    submitted = holding() && submitted_.load() >= point;
    if (submitted) ready = submit_up_to(submitted_.load());
  }
  wake(ready);
  if (submitted) device().poller().ready(*this);  // whose watches it may be
}

// With the lock.
void CudaStream::add_direct(Point point) noexcept {
  if (!holding() || point <= submitted_.load()) return;
  auto place = queue_.begin();
  for (auto held = queue_.begin(); held != queue_.end(); ++held) {
    if ((*held)->point_ != 0 && (*held)->point_ < point) place = held + 1;
  }
  // The first one may be at work, so nothing comes before it.
  if (place == queue_.begin()) {
    submitted_.store(point);
  } else {
    auto mark = std::make_unique<MarkOperation>();
    mark->point_ = point;
    queue_.insert(place, std::move(mark));
  }
}

bool CudaStream::free_in_turn(CUdeviceptr pointer) noexcept {
  if (!holding() || origin_ == Origin::external) return false;
  try {
    hold(std::make_unique<FreeOperation>(*this, pointer));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// A per-thread stream whose held work is through takes up its own queue again.
void CudaStream::rejoin() {
  if (!(special_.load(std::memory_order_acquire) & rejoin_bit) || !own_thread()) return;
  const ContextScope scope(context());
  device().check(driver->cuStreamWaitEvent(native_, rejoin_->event, 0), "waiting for an event");
  rejoin_.reset();
  special_.fetch_and(~unsigned{rejoin_bit});
}

// Whether that was all that kept the stream from the driver.
bool CudaStream::rejoined() {
  if (special_.load(std::memory_order_acquire) != rejoin_bit) return false;
  std::lock_guard lock(mutex_);
  rejoin();
  return direct();
}

void CudaStream::add_legacy_waits() {
  if (options_.role == StreamRole::legacy) {
    std::lock_guard lock(order_.mutex);
    for (CudaStream* stream : order_.held) {
      const Point point = stream->issued();
      if (point <= stream->for_legacy_ || !stream->try_retain()) continue;
      const auto kept = Ref<CudaStream>::take(stream);
      stream->for_legacy_ = point;
      queue_.push_back(std::make_unique<WaitOperation>(*stream, point, nullptr));
    }
  } else if (!options_.non_blocking && order_.legacy_held.load(std::memory_order_acquire) != 0) {
    const Point point = order_.legacy->issued();
    std::lock_guard lock(order_.mutex);
    if (point <= of_legacy_) return;
    of_legacy_ = point;
    queue_.push_back(std::make_unique<WaitOperation>(*order_.legacy, point, nullptr));
  }
}

void CudaStream::begin_holding() {
  retain();
  special_.fetch_or(held_bit);
  enter_order();
}

void CudaStream::enter_order() {
  if (options_.role == StreamRole::legacy) {
    order_.legacy_held.store(1, std::memory_order_release);
  } else if (!options_.non_blocking) {
    std::lock_guard lock(order_.mutex);
    if (std::exchange(in_order_, true)) return;
    for_legacy_ = 0;
    order_.held.push_back(this);
    order_.blocking_held.fetch_add(1, std::memory_order_release);
  }
}

void CudaStream::leave_order() noexcept {
  if (options_.role == StreamRole::legacy) {
    order_.legacy_held.store(0, std::memory_order_release);
  } else if (!options_.non_blocking) {
    std::lock_guard lock(order_.mutex);
    if (!std::exchange(in_order_, false)) return;
    std::erase(order_.held, this);
    order_.blocking_held.fetch_sub(1, std::memory_order_release);
  }
}

void CudaStream::end_holding() noexcept {
  // One that failed stays listed, so that those in order with it meet its failure.
  if (!(special_.load(std::memory_order_acquire) & failed_bit)) leave_order();
  if (stand_in_) {
    try {
      const ContextScope scope(context());
      rejoin_ = stand_in_->record_end();
      special_.fetch_or(rejoin_bit);
    } catch (const Error&) {
      rejoin_.reset();  // the device has failed: there is nothing left to order
    }
  } else {
    rejoin_.reset();
  }
  special_.fetch_and(~unsigned{held_bit});
}

void CudaStream::advance() noexcept {
  std::vector<Follower> ready;
  while (true) {
    Operation* operation = nullptr;
    {
      std::lock_guard lock(mutex_);
      if (!holding()) return;
      if (queue_.empty()) {
        end_holding();
        // Also of points that went straight to the driver, whose threads have not come to note them.
        ready = submit_up_to(issued());
        break;
      }
      operation = queue_.front().get();
    }
    Ref<Failure> failure;
    try {
      if (special_.load(std::memory_order_acquire) & failed_bit) {
        operation->skip(failure_);
      } else if (!operation->step(*this, failure)) {
        return;
      }
    } catch (const AsyncError& error) {
      failure = error.failure();
    } catch (const DriverError& error) {
      failure = make_ref<Failure>(error);
    } catch (const std::exception& error) {
      failure = make_ref<Failure>(error.what());
    }
    finish(std::move(failure));
  }
  wake(ready);
  release();
}

void CudaStream::finish(Ref<Failure> failure) noexcept {
  std::unique_ptr<Operation> over;  // let go outside the lock
  std::vector<Follower> ready;
  {
    std::lock_guard lock(mutex_);
    over = std::move(queue_.front());
    queue_.pop_front();
    const Point point = over->point_;
    if (failure) {
      failure_ = std::move(failure);
      failed_at_.store(point != 0 ? point : submitted_.load() + 1, std::memory_order_release);
      special_.fetch_or(failed_bit);
    }
    if (point == 0) return;
    if (over->completes() && !(special_.load() & failed_bit)) note_completed(point);
    ready = submit_up_to(point);
  }
  wake(ready);
}

// With the lock. Who waited for that.
std::vector<CudaStream::Follower> CudaStream::submit_up_to(Point point) noexcept {
  submitted_.store(point, std::memory_order_release);
  const auto first = std::partition(followers_.begin(), followers_.end(),
                                    [point](const Follower& follower) { return follower.point > point; });
  std::vector<Follower> ready(std::make_move_iterator(first), std::make_move_iterator(followers_.end()));
  followers_.erase(first, followers_.end());
  return ready;
}

void CudaStream::wake(const std::vector<Follower>& ready) noexcept {
  for (const Follower& follower : ready) follower.stream->device().poller().ready(*follower.stream);
}

bool CudaStream::when_submitted(Point point, CudaStream& follower) {
  std::lock_guard lock(mutex_);
  if (submitted() >= point) return true;
  followers_.push_back({point, Ref<CudaStream>::share(&follower)});
  return false;
}

}  // namespace anabranch::cuda
