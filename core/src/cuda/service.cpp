#include "service.hpp"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <iterator>

#include "stream.hpp"

namespace anabranch::cuda {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto shortest_pause = std::chrono::microseconds(5);
constexpr auto longest_pause = std::chrono::microseconds(500);

}  // namespace

void Service::start() {
  if (started_ || stopping_) return;
  started_ = true;
  // Detached: the thread may be inside the driver when the process ends.
  std::thread([this] {
    pthread_setname_np(pthread_self(), "anabranch-cuda");
    prctl(PR_SET_TIMERSLACK, 1000UL);
    run();
  }).detach();
}

void Service::ready(CudaStream& stream) noexcept {
  std::lock_guard lock(mutex_);
  start();
  ready_.push_back(Ref<CudaStream>::share(&stream));
  changed_.notify_one();
}

void Service::watch(Ref<CudaStream> stream, Point point, Ref<Marker> marker, Waiter& waiter) {
  std::lock_guard lock(mutex_);
  start();
  arrived_.push_back({std::move(stream), point, std::move(marker), &waiter});
  changed_.notify_one();
}

void Service::stop(std::chrono::milliseconds most) noexcept {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  if (started_) changed_.wait_for(lock, most, [this] { return over_; });
}

void Service::run() noexcept {
  std::vector<Watch> watches;
  std::vector<Ref<CudaStream>> ready;
  Clock::time_point active = Clock::now();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (ready_.empty() && arrived_.empty()) {
      if (watches.empty()) {
        changed_.wait(lock);
      } else {
        const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - active);
        changed_.wait_for(lock, std::clamp<std::chrono::microseconds>(waited / 16, shortest_pause, longest_pause));
      }
    }
    if (stopping_) break;
    if (!ready_.empty() || !arrived_.empty()) active = Clock::now();
    ready.swap(ready_);
    std::move(arrived_.begin(), arrived_.end(), std::back_inserter(watches));
    arrived_.clear();
    lock.unlock();
    for (const Ref<CudaStream>& stream : ready) stream->advance();
    ready.clear();
    look(watches);
    lock.lock();
  }
  over_ = true;
  changed_.notify_all();
}

void Service::look(std::vector<Watch>& watches) noexcept {
  for (std::size_t i = 0; i < watches.size();) {
    Watch& watch = watches[i];
    Ref<Failure> failure;
    bool reached = true;
    try {
      reached = watch.stream->query(watch.point, static_cast<CudaMarker*>(watch.marker.get()));
    } catch (const AsyncError& error) {
      failure = error.failure();
    } catch (const DriverError& error) {
      failure = make_ref<Failure>(error);
    }
    if (!reached) {
      ++i;
      continue;
    }
    const Watch over = std::exchange(watch, std::move(watches.back()));
    watches.pop_back();
    over.waiter->wake(failure);
  }
}

}  // namespace anabranch::cuda
