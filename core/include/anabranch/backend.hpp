#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "anabranch/event.hpp"
#include "anabranch/graph.hpp"
#include "anabranch/host.hpp"
#include "anabranch/kernel.hpp"
#include "anabranch/layout.hpp"
#include "anabranch/legacy_lanes.hpp"
#include "anabranch/memory.hpp"
#include "anabranch/stream.hpp"
#include "anabranch/trace.hpp"

namespace anabranch {

// What a device is and can do. Frozen when the backend is made.
struct Capabilities {
  std::string kind;  // "cpu", "cuda"
  int index = 0;
  std::string name;
  std::size_t total_memory = 0;
  int lowest_priority = 0;
  int highest_priority = 0;
  int architecture = 0;      // of the machine code it loads: 90 for sm_90; 0 where it loads none
  int workers = 0;           // threads that run kernels; 0 where the device schedules itself
  bool host_memory = false;  // the host may touch device memory through its pointer
};

// While it lives, the calling thread's current device is the one that made it, for libraries that look at that.
class Activation {
 public:
  virtual ~Activation() = default;
};

// One device. Everything that enqueues returns at once, whatever is queued, with the point of what it enqueued;
// operations of one stream run in the order of their points. All may be called from any thread. Errors in arguments
// have been found before: what throws here has enqueued nothing.
class Backend {
 public:
  virtual ~Backend() = default;
  const Capabilities& capabilities() const noexcept { return capabilities_; }
  LegacyLanes& legacy_lanes() noexcept { return legacy_lanes_; }
  // The device itself, of a backend that records for one.
  virtual Backend& device() noexcept { return *this; }
  virtual Capture* capture() noexcept { return nullptr; }

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
  // A point that stands for what is in the stream by now, for the host to observe: by whomever it was put there, the
  // legacy stream's order left out. Enqueues nothing.
  virtual Point newest(Stream& stream) { return stream.issued(); }
  // A point that covers everything the stream has to do by now.
  virtual Point record(Stream& stream) = 0;
  // The same for an event of these options. `marker` comes as that of the event's last record if nobody else holds it,
  // else null, and becomes this record's: what `wait`, `query` … need beside the point, and `elapsed` if the options
  // ask for timing.
  virtual Point record(Stream& stream, const EventOptions& options, Ref<Marker>& marker) = 0;
  // The marker for the first record of an event of these options, so that the event has a handle before; null where
  // markers have none.
  virtual Ref<Marker> make_marker(const EventOptions& options) {
    (void)options;
    return nullptr;
  }
  // Milliseconds between two records made with timing, `begin` on this device; none unless both are found complete, at
  // the cost of one call of a driver. Throws Error(event) if they have no clock in common, AsyncError as `query` does.
  virtual std::optional<double> elapsed(const Record& begin, const Record& end) = 0;
  // What `stream` does from now on starts after `point` of `target`, a stream of any device. A failure there is passed
  // on.
  virtual Point wait(Stream& stream, Stream& target, Point point, Marker* marker = nullptr) = 0;
  // Whether the point is reached. Throws AsyncError if the stream failed at or before it.
  virtual bool query(Stream& stream, Point point, Marker* marker = nullptr) = 0;
  // Whether the point is known to be reached without a failure, found out without a call of a driver. False: maybe.
  virtual bool known_over(Stream& stream, Point point) noexcept {
    try {
      return query(stream, point);
    } catch (const Error&) {
      return false;
    }
  }
  // Blocks the host until then, at most for `timeout`; whether it is reached. Throws AsyncError likewise.
  virtual bool synchronize(Stream& stream, Point point, std::chrono::nanoseconds timeout, Marker* marker = nullptr) = 0;
  // Blocks the host, at most for `timeout`, until a wait for the point of `target`, a stream of any device, can be made
  // the driver's, so that what others put into streams of this device past us comes after it too; whether it can. At
  // once where nobody does that.
  virtual bool settle(Stream& target, Point point, std::chrono::nanoseconds timeout) {
    (void)target, (void)point, (void)timeout;
    return true;
  }
  // Wakes `waiter` when the point is reached or failed; false, and no wake, if it already is.
  virtual bool notify(Stream& stream, Point point, Waiter& waiter, Marker* marker = nullptr) = 0;
  // The stream is somebody else's, and may be gone after this call. What it was given until now can still be asked for.
  virtual void release_external(Stream& stream) noexcept { (void)stream; }

  // -- memory --
  // Memory for work that `stream` does from now on; for all streams and the host once `ready` is reached there. Without
  // a stream, for everybody at once. Throws Error(memory).
  virtual Allocation allocate(Stream* stream, std::size_t bytes, MemoryKind kind) = 0;
  // Gives the block back after all `uses`, which may be taken over.
  virtual void free(std::byte* pointer, std::size_t bytes, MemoryKind kind, std::vector<Use>& uses) noexcept = 0;
  // Bytes not in use; may change at any time.
  virtual std::size_t free_memory() = 0;
  // All is over that the host knew of: freed memory goes back to the system, but for what the device keeps for later.
  virtual void trim() noexcept {}

  // -- work --
  virtual Point copy(Stream& stream, const Elements& dst, const Elements& src, std::int64_t count) = 0;
  // `value` points to one element.
  virtual Point fill(Stream& stream, const Elements& dst, const void* value, std::int64_t count) = 0;
  // `arguments` are copied: 8-byte slots as the kernel's entry expects them.
  virtual Point launch(Stream& stream, Kernel& kernel, const LaunchShape& shape,
                       std::span<const std::uint64_t> arguments) = 0;
  // Likewise, with the blocks that the caller chose.
  virtual Point launch_grid(Stream& stream, Kernel& kernel, const LaunchGrid& grid,
                            std::span<const std::uint64_t> arguments) = 0;
  // The stream holds here until `pending` is completed.
  virtual Point suspend(Stream& stream, Ref<Pending> pending) = 0;

  // -- code --
  // Loads compiled code: a cubin, a fat binary, or PTX ending in a zero byte. Throws Error(value) with the driver's log
  // if the device cannot run it. Not while a capture runs on this thread.
  virtual Ref<Library> load_library(std::span<const std::byte> image) = 0;

  // -- graphs --
  // The graph made ready to run here as a whole, its upload included; all of its nodes are of devices of this kind.
  // Null if this device cannot do that; `make_graph_fallback` can then.
  virtual Ref<Executable> instantiate(const Ref<Graph>& graph, const Ref<Works>& works) {
    (void)graph, (void)works;
    return nullptr;
  }

  // -- other libraries --
  // Null where nobody looks.
  virtual std::unique_ptr<Activation> activate() { return nullptr; }

  // -- trace --
  // What the calling thread puts into the stream between the two is measured by the span; with events, unless the
  // device has a better way.
  virtual Ref<Span> open_span(Stream& stream);
  virtual void close_span(Stream& stream, Span& span);

  // -- end --
  // Takes up no more work and waits, a few seconds at most, for what is running. For the end of the process.
  virtual void stop() noexcept = 0;

 protected:
  Capabilities capabilities_;

 private:
  LegacyLanes legacy_lanes_;
};

// `Backend::wait`, traced if anything is; `added` by hazards.
inline Point enqueue_wait(Stream& stream, Stream& target, Point point, Marker* marker, bool added) {
  if (tracing()) [[unlikely]]
    return trace_wait(stream, target, point, marker, added);
  return stream.backend().wait(stream, target, point, marker);
}

}  // namespace anabranch
