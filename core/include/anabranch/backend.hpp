#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "anabranch/event.hpp"
#include "anabranch/host.hpp"
#include "anabranch/layout.hpp"
#include "anabranch/memory.hpp"
#include "anabranch/stream.hpp"

namespace anabranch {

// What a device is and can do. Frozen when the backend is made.
struct Capabilities {
  std::string kind;  // "cpu", "cuda"
  int index = 0;
  std::string name;
  std::size_t total_memory = 0;
  int lowest_priority = 0;
  int highest_priority = 0;
  int workers = 0;           // threads that run kernels; 0 where the device schedules itself
  bool host_memory = false;  // the host may touch device memory through its pointer
};

// A compiled kernel. `code` is the entry for its device; on the CPU
//   void (int64_t begin, int64_t end, const int64_t* dims, const void* arguments)
// runs the indices [begin, end) of the flattened, row-major index space. Lives until its last launch has run.
class Kernel : public RefCounted {
 public:
  Kernel(void* code, std::string name) : code(code), name(std::move(name)) {}
  void* const code;
  const std::string name;
};

struct LaunchShape {
  int ndim = 1;
  std::int64_t dims[4] = {0, 1, 1, 1};
  std::int64_t size() const noexcept { return dims[0] * dims[1] * dims[2] * dims[3]; }
};

// One device. Everything that enqueues returns at once, whatever is queued, with the point of what it enqueued;
// operations of one stream run in the order of their points. All may be called from any thread. Errors in arguments
// have been found before: what throws here has enqueued nothing.
class Backend {
 public:
  virtual ~Backend() = default;
  const Capabilities& capabilities() const noexcept { return capabilities_; }

  // -- streams --
  // Priorities are clamped to the device's range.
  virtual Ref<Stream> create_stream(StreamOptions options) = 0;
  // The legacy stream, or the calling thread's per-thread stream.
  virtual Ref<Stream> default_stream(StreamRole role) = 0;
  // The living stream of that handle, created here or elsewhere. Throws Error(value) if there is none.
  virtual Ref<Stream> find_stream(std::uintptr_t handle) = 0;
  // The streams that are alive now, for the whole device to be synchronized.
  virtual std::vector<Ref<Stream>> streams() = 0;

  // -- order --
  // What a host that observes the stream has to see reached: for the legacy stream also what blocking streams have to
  // do by now. Enqueues nothing and orders nothing.
  virtual std::vector<Record> frontier(Stream& stream) = 0;
  // A point that covers everything the stream has to do by now. With `stamp`, an operation that stores the time when it
  // is reached.
  virtual Point record(Stream& stream, Timestamp* stamp) = 0;
  // What `stream` does from now on starts after `point` of `target`, a stream of any device of this kind. A failure
  // there is passed on.
  virtual Point wait(Stream& stream, Stream& target, Point point) = 0;
  // Whether the point is reached. Throws AsyncError if the stream failed at or before it.
  virtual bool query(Stream& stream, Point point) = 0;
  // Blocks the host until then, at most for `timeout`; whether it is reached. Throws AsyncError likewise.
  virtual bool synchronize(Stream& stream, Point point, std::chrono::nanoseconds timeout) = 0;
  // Wakes `waiter` when the point is reached or failed; false, and no wake, if it already is.
  virtual bool notify(Stream& stream, Point point, Waiter& waiter) = 0;

  // -- memory --
  // Memory for work that `stream` does from now on; for all streams and the host once `ready` is reached there. Without
  // a stream, for everybody at once. Throws Error(memory).
  virtual Allocation allocate(Stream* stream, std::size_t bytes, MemoryKind kind) = 0;
  // Gives the block back after all `uses`.
  virtual void free(std::byte* pointer, std::size_t bytes, MemoryKind kind, std::vector<Use> uses) noexcept = 0;
  // Bytes not in use; may change at any time.
  virtual std::size_t free_memory() = 0;

  // -- work --
  virtual Point copy(Stream& stream, const Elements& dst, const Elements& src, std::int64_t count) = 0;
  // `value` points to one element.
  virtual Point fill(Stream& stream, const Elements& dst, const void* value, std::int64_t count) = 0;
  // `arguments` are copied: 8-byte slots as the kernel's entry expects them.
  virtual Point launch(Stream& stream, Kernel& kernel, const LaunchShape& shape,
                       std::span<const std::uint64_t> arguments) = 0;
  // The stream holds here until `pending` is completed.
  virtual Point suspend(Stream& stream, Ref<Pending> pending) = 0;

  // -- end --
  // Takes up no more work and waits, a few seconds at most, for what is running. For the end of the process.
  virtual void stop() noexcept = 0;

 protected:
  Capabilities capabilities_;
};

}  // namespace anabranch
