#pragma once

#include <cstdint>
#include <unordered_map>

#include "event.hpp"

namespace anabranch::cuda {

class CudaStream;

// What only a per-thread stream needs. The driver identifies such a stream by the calling thread. Work that another
// thread submits for it, that is, held work, goes into a stand-in: a blocking stream that starts after everything that
// the owner had enqueued. The owner's next work comes after that.
class StandIn {
 public:
  // `owner`: the serial of the thread whose stream it is, or 0 for streams that all threads share.
  void open(std::uint64_t owner) noexcept { owner_ = owner; }
  bool shared() const noexcept { return owner_ == 0; }
  // Whether the calling thread means the stream by its native handle.
  bool own_thread() const noexcept;

  // Called when the stream begins to hold, with an event at the end of the owner's work.
  void begin(Ref<CudaMarker> end) noexcept { handover_ = std::move(end); }
  // The stand-in for the calling thread. Requires that the context is current.
  CUstream native(CudaBackend& device);
  // Called when the stream has nothing to submit any more. Returns whether the stand-in has work that the owner's next
  // work must wait for.
  bool end() noexcept;
  // Makes the owner's stream wait for the stand-in.
  void rejoin(CudaBackend& device, CUstream owner);
  void close() noexcept;

 private:
  std::uint64_t owner_ = 0;
  Ref<CudaStream> stream_;
  Ref<CudaMarker> handover_;  // the end of the side that had work last, until the other side waits for it
};

// The per-thread streams of a thread, which waits for their work when it ends. The driver destroys its streams next. If
// memory was allocated or freed in one with pending work, the thread has hung in the driver at that point (580).
struct OwnStreams {
  ~OwnStreams();
  std::unordered_map<CudaBackend*, Ref<CudaStream>> streams;
};

}  // namespace anabranch::cuda
