#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "anabranch/event.hpp"

namespace anabranch::cuda {

class CudaStream;

// A thread of a device, which hands on the work that streams hold back and tells waiters of points reached. It looks at
// the points again and again, the less often the longer it waits: a driver's callback would not be called after an
// error, and a thread that blocks in the driver could not be told of new work. It looks at the first of a stream's
// points alone, and at none that the stream holds back. Started at its first use; idle while there is nothing to look
// at.
class Poller {
 public:
  // `stream` may go on: it is advanced on the thread. Any thread, also under locks.
  void ready(CudaStream& stream) noexcept;
  // Wakes `waiter` once the point is reached or has failed.
  void watch(Ref<CudaStream> stream, Point point, Ref<Marker> marker, Waiter& waiter);
  // The device has failed, and so has every point.
  void fail() noexcept;
  // Ends the thread, once it is through with what it is at; waits for that a while.
  void stop(std::chrono::milliseconds most) noexcept;

 private:
  struct Watch {
    Ref<CudaStream> stream;
    Point point;
    Ref<Marker> marker;
    Waiter* waiter;
  };
  // By stream and point: those of one stream are reached in this order.
  using Watches = std::multimap<std::pair<CudaStream*, Point>, Watch>;

  void start();
  void run() noexcept;
  // Moves those that are the driver's to reach by now.
  static void hand_on(CudaStream& stream, Watches& held, Watches& running) noexcept;
  // Wakes whose point is reached; how many streams have more.
  static std::size_t look(Watches& running) noexcept;

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
