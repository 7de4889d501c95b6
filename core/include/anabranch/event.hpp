#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "anabranch/lane.hpp"
#include "anabranch/lock.hpp"
#include "anabranch/stream.hpp"

namespace anabranch {

struct HostTask;

// What a backend keeps of one record of an event, where the stream and the point do not say enough. Made by
// `Backend::record` and understood by that backend alone.
class Marker : public RefCounted {
 public:
  // What identifies it to the device's driver: a CUevent on CUDA; 0 where the driver knows of none.
  virtual std::uintptr_t handle() const noexcept { return 0; }
};

// When an operation completed, in nanoseconds of a steady clock of its device; 0 until then. The marker of backends
// that read a clock of the host's.
class Timestamp final : public Marker {
 public:
  std::atomic<std::int64_t> nanoseconds{0};
};

// What an event holds after it was recorded: where in which stream. Empty (no stream): never recorded, complete.
struct Record {
  Ref<Stream> stream;
  Point point = 0;
  Ref<Marker> marker;
  Past past = {};             // what comes before it, as far as it is kept track of
  Lane::Version version = 0;  // of the lane then; 0: it was not kept track of
};

struct EventOptions {
  bool timing = false;
  bool blocking = false;
  bool interprocess = false;
};

// A marker put into a stream: complete when everything enqueued there before it is complete. Recording again replaces
// the record; waits keep the record they found. Every call is atomic and may come from any thread.
class Event final : public RefCounted {
 public:
  Event(Backend& backend, const EventOptions& options) : backend_(backend), options_(options) {}

  Backend& backend() const noexcept { return backend_; }
  const EventOptions& options() const noexcept { return options_; }

  // The last record, or an empty one.
  Record last() const;
  // Throws Error(device) if the stream is another device's. By a task, which then is kept track of, or null.
  void record(Stream& stream, const Lane* task = nullptr);
  // The stream's later work waits for the last record; nothing if there is none. The stream may be on another device.
  // By a task, likewise.
  void wait(Stream& stream, const Lane* task = nullptr) const;
  // Whether the last record is complete, which a task, or null, then has observed. Throws AsyncError if the work
  // failed.
  bool query(HostTask* task = nullptr) const;
  // Milliseconds from the last record to that of `end`, which a task, or null, then has observed both; none unless both
  // are found complete, and where either was made without timing, is not recorded or is recorded in a capture. Throws
  // Error(event) if the two have no clock in common, AsyncError if the work before one of them failed.
  std::optional<double> elapsed(const Event& end, HostTask* task = nullptr) const;
  // What identifies the last record to the driver, or the first one if there is none yet; the address of this where the
  // driver knows of no events. May change with a record, and is good for as long as this is there.
  std::uintptr_t handle();

 private:
  [[noreturn]] void refuse(const Stream& stream) const;
  // With the lock. Whether the device has a time of the last record, or will have it.
  bool has_time() const { return options_.timing && last_.stream && !last_.stream->capture(); }

  Backend& backend_;
  EventOptions options_;
  mutable SpinLock lock_;
  Record last_;
};

// Milliseconds between two records made with timing, both found complete. Throws Error(event) if the two devices have
// no clock in common.
double elapsed_milliseconds(const Record& begin, const Record& end);

}  // namespace anabranch
