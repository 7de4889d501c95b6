#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "anabranch/hazard/lane.hpp"
#include "anabranch/lock.hpp"
#include "anabranch/stream/stream.hpp"

namespace anabranch {

struct HostTask;

// Backend-specific state of one event record, in addition to its stream and point. `Backend::record` creates it, and
// only that backend interprets it.
class Marker : public RefCounted {
 public:
  // The driver's handle: a CUevent on CUDA; 0 if the driver has none.
  virtual std::uintptr_t handle() const noexcept { return 0; }
};

// The completion time of an operation, in nanoseconds of its device's steady clock; 0 until then. Backends that read a
// host clock use it as their marker.
class Timestamp final : public Marker {
 public:
  std::atomic<std::int64_t> nanoseconds{0};
};

// A position in a stream, as an event stores it. Without a stream: never recorded, which counts as completed.
struct Record {
  Ref<Stream> stream;
  Point point = 0;
  Ref<Marker> marker;
  Past past = {};             // everything before the record, if order is tracked
  Lane::Version version = 0;  // of the lane at that time; 0 if order was not tracked
};

struct EventOptions {
  bool timing = false;
  bool blocking = false;
  bool interprocess = false;
};

// An event is completed when everything enqueued in the stream before its last record is completed. A new record
// replaces the last one; earlier waits keep the record they found. Each call is atomic. Any thread may call any member.
class Event final : public RefCounted {
 public:
  Event(Backend& backend, const EventOptions& options) : backend_(backend), options_(options) {}

  Backend& backend() const noexcept { return backend_; }
  const EventOptions& options() const noexcept { return options_; }

  // The last record, or an empty one.
  Record last() const;
  // Throws Error(device) if the stream belongs to another device. `task` is the lane of the calling task; null if order
  // is not tracked.
  void record(Stream& stream, const Lane* task = nullptr);
  // Later work of `stream`, which may be on another device, waits for the last record. Does nothing without a record.
  // `task` as for `record`.
  void wait(Stream& stream, const Lane* task = nullptr) const;
  // Whether the last record is completed; if so, `task` has observed it (null: nobody has). Throws AsyncError if the
  // work failed.
  bool query(HostTask* task = nullptr) const;
  // Milliseconds from the last record to that of `end`; `task` has then observed both (null: nobody has). None if
  // either is pending, has no timing, was never recorded or was recorded in a capture. Throws Error(event) if the two
  // have no common clock, AsyncError if the work before one of them failed. Locks both events, in address order.
  std::optional<double> elapsed(const Event& end, HostTask* task = nullptr) const;
  // The driver's handle of the last record, or of the first one if there is none yet; the address of this object if the
  // driver has no events. Valid for the lifetime of this object, but a new record may change it.
  std::uintptr_t handle();

 private:
  [[noreturn]] void refuse(const Stream& stream) const;
  // Requires the lock. Whether the device has, or will have, a time for the last record.
  bool has_time() const { return options_.timing && last_.stream && !last_.stream->capture(); }

  Backend& backend_;
  EventOptions options_;
  mutable SpinLock lock_;
  Record last_;
};

// Milliseconds between two completed records with timing. Throws Error(event) if the two devices have no common clock.
double elapsed_milliseconds(const Record& begin, const Record& end);

}  // namespace anabranch
