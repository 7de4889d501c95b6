#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "anabranch/stream/event.hpp"

namespace anabranch::cuda {

class CudaStream;

// A device's thread that submits the work that streams hold, and wakes waiters when points are reached. It polls, at
// intervals that grow with the waiting time: a driver's callback would not be called after an error, and a thread
// blocked in the driver could not take new work. It polls only the first point of each stream, and none that the stream
// holds. Starts at its first use; sleeps when there is nothing to poll.
class Poller {
 public:
  // Makes the poller advance `stream`. Any thread may call it, also under locks.
  void ready(CudaStream& stream) noexcept;
  // Wakes `waiter` once the point is reached or has failed.
  void watch(Ref<CudaStream> stream, Point point, Ref<Marker> marker, Waiter& waiter);
  // The device has failed, and with it every point.
  void fail() noexcept;
  // Ends the thread after its current step, and waits up to `most` for that.
  void stop(std::chrono::milliseconds most) noexcept;

 private:
  struct Watch {
    Ref<CudaStream> stream;
    Point point;
    Ref<Marker> marker;
    Waiter* waiter;
  };
  // By stream and point: the points of one stream are reached in this order.
  using Watches = std::multimap<std::pair<CudaStream*, Point>, Watch>;

  void start();
  void run() noexcept;
  // Moves the watches whose points the driver has.
  static void forward(CudaStream& stream, Watches& held, Watches& running) noexcept;
  // Wakes the waiters of reached points. Returns the number of streams that have more.
  static std::size_t poll(Watches& running) noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Ref<CudaStream>> ready_;
  std::vector<Watch> arrived_;
  bool started_ = false;
  bool failed_ = false;
  bool stopping_ = false;
  bool over_ = false;
};

}  // namespace anabranch::cuda
