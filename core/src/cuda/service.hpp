#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "anabranch/event.hpp"

namespace anabranch::cuda {

class CudaStream;

// A thread of a device, which hands on the work that streams hold back and tells waiters of points reached. It looks at
// the points again and again, the less often the longer it waits: a driver's callback would not be called after an
// error, and a thread that blocks in the driver could not be told of new work. Started at its first use; idle while
// there is nothing to wait for.
class Service {
 public:
  // `stream` may go on: it is advanced on the thread. Any thread, also under locks.
  void ready(CudaStream& stream) noexcept;
  // Wakes `waiter` once the point is reached or has failed.
  void watch(Ref<CudaStream> stream, Point point, Ref<Marker> marker, Waiter& waiter);
  // Ends the thread, once it is through with what it is at; waits for that a while.
  void stop(std::chrono::milliseconds most) noexcept;

 private:
  struct Watch {
    Ref<CudaStream> stream;
    Point point;
    Ref<Marker> marker;
    Waiter* waiter;
  };

  void start();
  void run() noexcept;
  void look(std::vector<Watch>& watches) noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Ref<CudaStream>> ready_;
  std::vector<Watch> arrived_;
  bool started_ = false;
  bool stopping_ = false;
  bool over_ = false;
};

}  // namespace anabranch::cuda
