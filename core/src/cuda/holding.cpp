// The part of `CudaStream` that holds work and submits it later.
#include "backend.hpp"

namespace anabranch::cuda {

Point CudaStream::hold(std::unique_ptr<Operation> operation) {
  Point point = 0;
  bool began = false;
  {
    std::lock_guard lock(mutex_);
    rejoin();
    if (!holding()) {
      if (!stand_in_.shared()) stand_in_.begin(record_end());
      retain();
      special_.fetch_or(held_bit);
      legacy_.enter();
      deferred_.begin(issued_.load());
      began = true;
    }
    legacy_.add_waits(deferred_);
    point = next_point();
    deferred_.push(std::move(operation), point);
  }
  if (began) device().poller().ready(*this);
  return point;
}

// Another thread began to hold while this operation went directly to the driver, and the point was issued after that.
// Waits for the point must not wait for held operations that come after it.
void CudaStream::note_direct(Point point) noexcept {
  std::vector<DeferredQueue::Follower> ready;
  bool submitted = false;
  {
    std::lock_guard lock(mutex_);
    add_direct(point);
    submitted = holding() && deferred_.submitted() >= point;
    if (submitted) ready = deferred_.submit_up_to(deferred_.submitted());
  }
  DeferredQueue::wake(ready);
  if (submitted) device().poller().ready(*this);  // in case it watches the point
}

void CudaStream::add_direct(Point point) {
  if (holding()) deferred_.insert_direct(point);
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

void CudaStream::rejoin() {
  if (!(special_.load(std::memory_order_acquire) & rejoin_bit) || !stand_in_.own_thread()) return;
  stand_in_.rejoin(device(), native_);
  special_.fetch_and(~unsigned{rejoin_bit});
}

bool CudaStream::rejoined() {
  if (special_.load(std::memory_order_acquire) != rejoin_bit) return false;
  std::lock_guard lock(mutex_);
  rejoin();
  return direct();
}

void CudaStream::end_holding() noexcept {
  if (!(special_.load(std::memory_order_acquire) & failed_bit)) legacy_.leave();
  if (stand_in_.end()) special_.fetch_or(rejoin_bit);
  special_.fetch_and(~unsigned{held_bit});
}

void CudaStream::advance() noexcept {
  std::vector<DeferredQueue::Follower> ready;
  while (true) {
    Operation* operation = nullptr;
    {
      std::lock_guard lock(mutex_);
      if (!holding()) return;
      if (deferred_.empty()) {
        end_holding();
        // Includes points of direct operations that their threads have not yet noted.
        ready = deferred_.submit_up_to(issued());
        break;
      }
      operation = &deferred_.first();
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
  DeferredQueue::wake(ready);
  release();
}

void CudaStream::finish(Ref<Failure> failure) noexcept {
  std::unique_ptr<Operation> over;  // released outside the lock
  std::vector<DeferredQueue::Follower> ready;
  {
    std::lock_guard lock(mutex_);
    over = deferred_.pop();
    const Point point = over->point();
    if (failure) {
      failure_ = std::move(failure);
      failed_at_.store(point != 0 ? point : deferred_.submitted() + 1, std::memory_order_release);
      special_.fetch_or(failed_bit);
    }
    if (point == 0) return;
    if (over->completes() && !(special_.load() & failed_bit)) note_completed(point);
    ready = deferred_.submit_up_to(point);
  }
  DeferredQueue::wake(ready);
}

bool CudaStream::when_submitted(Point point, CudaStream& follower) {
  std::lock_guard lock(mutex_);
  if (submitted() >= point) return true;
  deferred_.add_follower(point, follower);
  return false;
}

}  // namespace anabranch::cuda
