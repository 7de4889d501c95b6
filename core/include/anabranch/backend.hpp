#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "anabranch/graph/graph.hpp"
#include "anabranch/hazard/legacy_lanes.hpp"
#include "anabranch/kernel/kernel.hpp"
#include "anabranch/memory/layout.hpp"
#include "anabranch/memory/memory.hpp"
#include "anabranch/stream/event.hpp"
#include "anabranch/stream/host.hpp"
#include "anabranch/stream/stream.hpp"
#include "anabranch/stream/unraised.hpp"
#include "anabranch/trace/trace.hpp"

namespace anabranch {

namespace explore {
class Controller;
}

// The properties of a device. Constant after the backend's construction.
struct Capabilities {
  std::string kind;  // "cpu", "cuda"
  int index = 0;
  std::string name;
  std::size_t total_memory = 0;
  int lowest_priority = 0;
  int highest_priority = 0;
  int architecture = 0;               // of the machine code that it loads: 90 for sm_90; 0 if it loads none
  int workers = 0;                    // threads that run kernels; 0 if the device schedules itself
  std::int64_t resident_threads = 0;  // that all multiprocessors together run at a time, at most; 0 if it has none
  bool host_memory = false;           // the host may touch device memory through its pointer
};

// During its lifetime the device that created it is the calling thread's current one, for libraries that use that.
class Activation {
 public:
  virtual ~Activation() = default;
};

// One device. A verb that enqueues returns at once, whatever is queued, with the point of its operation. Operations of
// one stream run in the order of their points. Any thread may call any verb. The caller has checked the arguments; a
// verb that throws has enqueued nothing.
class Backend {
 public:
  virtual ~Backend() = default;
  const Capabilities& capabilities() const noexcept { return capabilities_; }
  LegacyLanes& legacy_lanes() noexcept { return legacy_lanes_; }
  UnraisedFailures& unraised() noexcept { return unraised_; }
  // The device's own backend, for a backend that records for one.
  virtual Backend& device() noexcept { return *this; }
  virtual Capture* capture() noexcept { return nullptr; }

  // -- streams --
  // Priorities are clamped to the device's range.
  virtual Ref<Stream> create_stream(StreamOptions options) = 0;
  // The legacy stream, or the calling thread's per-thread stream.
  virtual Ref<Stream> default_stream(StreamRole role) = 0;
  // The living stream with that handle, whoever created it. Throws Error(value) if there is none.
  virtual Ref<Stream> find_stream(std::uintptr_t handle) = 0;
  // The living streams, for synchronizing the whole device.
  virtual std::vector<Ref<Stream>> streams() = 0;

  // -- order --
  // The points that must be completed for a host that observes the stream. For the legacy stream that includes pending
  // work of blocking streams. Enqueues nothing and makes no order.
  virtual std::vector<Record> frontier(Stream& stream) = 0;
  // A point that covers the stream's current work, including that of other libraries, but not the legacy stream's
  // order. The host may observe it. Enqueues nothing.
  virtual Point newest(Stream& stream) { return stream.issued(); }
  // A point that covers everything that the stream must complete so far.
  virtual Point record(Stream& stream) = 0;
  // The same for an event with these options. On entry `marker` is the marker of the event's last record if nothing
  // else refers to it, else null. On return it is this record's, which `wait`, `query` and others need beside the
  // point, and `elapsed` if the options include timing.
  virtual Point record(Stream& stream, const EventOptions& options, Ref<Marker>& marker) = 0;
  // A marker for the first record of an event with these options, so that the event has a handle beforehand; null if
  // markers have no handles.
  virtual Ref<Marker> make_marker(const EventOptions& options) {
    (void)options;
    return nullptr;
  }
  // Milliseconds between two records with timing, `begin` on this device; none if either is pending. Costs one driver
  // call if both are completed. Throws Error(event) if they have no common clock, AsyncError as `query` does.
  virtual std::optional<double> elapsed(const Record& begin, const Record& end) = 0;
  // Later work of `stream` starts after `point` of `target`, a stream of any device. A failure of that work fails
  // `stream`, too.
  virtual Point wait(Stream& stream, Stream& target, Point point, Marker* marker = nullptr) = 0;
  // Whether the point is completed. Throws AsyncError if the stream failed at or before it.
  virtual bool query(Stream& stream, Point point, Marker* marker = nullptr) = 0;
  // Whether the point is known, without a driver call, to be completed without a failure. False means unknown.
  virtual bool known_completed(Stream& stream, Point point) noexcept {
    try {
      return query(stream, point);
    } catch (const Error&) {
      return false;
    }
  }
  // Blocks the host until the point is completed, for `timeout` at most. Returns whether it is. Throws as `query` does.
  virtual bool synchronize(Stream& stream, Point point, std::chrono::nanoseconds timeout, Marker* marker = nullptr) = 0;
  // Blocks the host, for `timeout` at most, until the driver can take a wait for the point of `target`, a stream of any
  // device. Work that other libraries put into this device's streams then comes after the point, too. Returns whether
  // the driver can. Returns at once on devices without such libraries.
  virtual bool flush(Stream& target, Point point, std::chrono::nanoseconds timeout) {
    (void)target, (void)point, (void)timeout;
    return true;
  }
  // Wakes `waiter` when the point is completed or failed. Returns false, without a wake, if it already is.
  virtual bool notify(Stream& stream, Point point, Waiter& waiter, Marker* marker = nullptr) = 0;
  // An external stream may be destroyed after this call. Its earlier points can still be queried.
  virtual void release_external(Stream& stream) noexcept { (void)stream; }

  // -- memory --
  // Memory for later work of `stream`; other streams and the host may use it once `ready` is completed there. Without a
  // stream, everybody may use it at once. Throws Error(memory).
  virtual Allocation allocate(Stream* stream, std::size_t bytes, MemoryKind kind) = 0;
  // Releases the block after all `uses`, without blocking. May move from `uses`.
  virtual void free(std::byte* pointer, std::size_t bytes, MemoryKind kind, std::vector<Use>& uses) noexcept = 0;
  // Unused bytes. May change at any time.
  virtual std::size_t free_memory() = 0;
  // Called when all work known to the host is completed: returns freed memory to the system, except for what the device
  // caches.
  virtual void trim() noexcept {}

  // -- work --
  virtual Point copy(Stream& stream, const Elements& dst, const Elements& src, std::int64_t count) = 0;
  // `value` points to one element.
  virtual Point fill(Stream& stream, const Elements& dst, const void* value, std::int64_t count) = 0;
  // Copies `arguments`: 8-byte slots in the layout of the kernel's entry.
  virtual Point launch(Stream& stream, Kernel& kernel, const LaunchShape& shape,
                       std::span<const std::uint64_t> arguments) = 0;
  // The same, with blocks that the caller chose.
  virtual Point launch_grid(Stream& stream, Kernel& kernel, const LaunchGrid& grid,
                            std::span<const std::uint64_t> arguments) = 0;
  // Work of another library, in order with the stream's own. Throws Error(value) on devices without such libraries.
  virtual Point external(Stream& stream, Ref<ExternalWork> work) {
    (void)stream;
    throw Error(ErrorKind::value, work->name + " is for GPUs, not for " + capabilities_.kind + " devices");
  }
  // Later work of the stream starts after `pending` is completed.
  virtual Point suspend(Stream& stream, Ref<HostOperation> pending) = 0;

  // -- code --
  // Loads compiled code: a cubin, a fat binary, or PTX ending in a zero byte. Throws Error(value) with the driver's log
  // if the device cannot run it. Must not be called while a capture is open on this thread.
  virtual Ref<Library> load_library(std::span<const std::byte> image) = 0;

  // -- graphs --
  // Instantiates the graph, whose nodes are all on devices of this kind, and uploads it. Null if this device cannot run
  // it as a whole; use `make_graph_fallback` then.
  virtual Ref<Executable> instantiate(const Ref<Graph>& graph, const Ref<Works>& works) {
    (void)graph, (void)works;
    return nullptr;
  }

  // -- other libraries --
  // Null on devices that other libraries do not use.
  virtual std::unique_ptr<Activation> activate() { return nullptr; }

  // -- trace --
  // The span measures what the calling thread enqueues in the stream between these calls: with events, unless the
  // device has a better way.
  virtual Ref<Span> open_span(Stream& stream);
  virtual void close_span(Stream& stream, Span& span);

  // -- exploration --
  // From now on ready operations go to the controller; null: to the device again. The device must be idle.
  virtual void control(explore::Controller* controller) { (void)controller; }
  virtual bool controlled() const noexcept { return false; }

  // -- end --
  // Starts no more work and waits, a few seconds at most, for running work. For the end of the process.
  virtual void stop() noexcept = 0;

 protected:
  Capabilities capabilities_;

 private:
  LegacyLanes legacy_lanes_;
  UnraisedFailures unraised_;
};

// Calls `Backend::wait`, with an entry in open traces. `added`: hazards added the wait.
inline Point enqueue_wait(Stream& stream, Stream& target, Point point, Marker* marker, bool added) {
  if (tracing()) [[unlikely]]
    return trace_wait(stream, target, point, marker, added);
  return stream.backend().wait(stream, target, point, marker);
}

}  // namespace anabranch
