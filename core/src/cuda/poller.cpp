#include "poller.hpp"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <limits>

#include "stream.hpp"

namespace anabranch::cuda {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto shortest_pause = std::chrono::microseconds(5);
constexpr auto longest_pause = std::chrono::microseconds(500);
// Added for each polled stream, so that the driver, whose lock other threads need, is idle most of the time.
constexpr auto pause_per_stream = std::chrono::nanoseconds(500);

}  // namespace

void Poller::start() {
  if (started_ || stopping_) return;
  started_ = true;
  // Detached: the thread may be inside the driver when the process ends.
  std::thread([this] {
    pthread_setname_np(pthread_self(), "anabranch-cuda");
    prctl(PR_SET_TIMERSLACK, 1000UL);
    run();
  }).detach();
}

void Poller::ready(CudaStream& stream) noexcept {
  std::lock_guard lock(mutex_);
  start();
  ready_.push_back(Ref<CudaStream>::share(&stream));
  changed_.notify_one();
}

void Poller::watch(Ref<CudaStream> stream, Point point, Ref<Marker> marker, Waiter& waiter) {
  std::lock_guard lock(mutex_);
  start();
  arrived_.push_back({std::move(stream), point, std::move(marker), &waiter});
  changed_.notify_one();
}

void Poller::fail() noexcept {
  std::lock_guard lock(mutex_);
  failed_ = true;
  changed_.notify_one();
}

void Poller::stop(std::chrono::milliseconds most) noexcept {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  if (started_) changed_.wait_for(lock, most, [this] { return over_; });
}

void Poller::run() noexcept {
  Watches running;
  Watches held;  // of held points: not polled until their streams advance
  std::size_t polled_at = 0;
  std::vector<Watch> arrived;
  std::vector<Ref<CudaStream>> ready;
  Clock::time_point active = Clock::now();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const bool all_failed = failed_ && !held.empty();
    if (ready_.empty() && arrived_.empty() && !all_failed) {
      if (running.empty()) {
        changed_.wait(lock);
      } else {
        const std::chrono::nanoseconds least = shortest_pause + polled_at * pause_per_stream;
        const std::chrono::nanoseconds most = std::max<std::chrono::nanoseconds>(least, longest_pause);
        changed_.wait_for(lock, std::clamp<std::chrono::nanoseconds>((Clock::now() - active) / 16, least, most));
      }
    }
    if (stopping_) break;
    if (!ready_.empty() || !arrived_.empty()) active = Clock::now();
    ready.swap(ready_);
    arrived.swap(arrived_);
    lock.unlock();
    for (Watch& watch : arrived) {
      const std::pair key(watch.stream.get(), watch.point);
      held.emplace(key, std::move(watch));
      forward(*key.first, held, running);
    }
    arrived.clear();
    for (const Ref<CudaStream>& stream : ready) {
      stream->advance();
      forward(*stream, held, running);
    }
    ready.clear();
    if (all_failed) running.merge(held);
    polled_at = poll(running);
    lock.lock();
  }
  over_ = true;
  changed_.notify_all();
}

void Poller::forward(CudaStream& stream, Watches& held, Watches& running) noexcept {
  const auto end = held.upper_bound({&stream, stream.submitted()});
  for (auto next = held.lower_bound({&stream, 0}); next != end;) running.insert(held.extract(next++));
}

std::size_t Poller::poll(Watches& running) noexcept {
  std::size_t streams = 0;
  for (auto next = running.begin(); next != running.end();) {
    const Watch& watch = next->second;
    Ref<Failure> failure;
    bool reached = true;
    try {
      reached = watch.stream->query(watch.point, static_cast<CudaMarker*>(watch.marker.get()));
    } catch (const AsyncError& error) {
      failure = error.failure();
    } catch (const DriverError& error) {
      failure = make_ref<Failure>(error);
    }
    if (reached) {
      const auto over = running.extract(next++);
      over.mapped().waiter->wake(failure);
    } else {
      next = running.upper_bound({watch.stream.get(), std::numeric_limits<Point>::max()});
      ++streams;
    }
  }
  return streams;
}

}  // namespace anabranch::cuda
