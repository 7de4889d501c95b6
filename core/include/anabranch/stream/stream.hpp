#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "anabranch/error.hpp"
#include "anabranch/hazard/lane.hpp"
#include "anabranch/ref.hpp"
#include "anabranch/stream/point.hpp"

namespace anabranch {

class Backend;
class Capture;
class Stream;

enum class StreamRole : std::uint8_t {
  created,     // by create_stream
  legacy,      // the legacy default stream, in order with every blocking stream of its device
  per_thread,  // one thread's own default stream; a blocking one
};

struct StreamOptions {
  int priority = 0;
  bool non_blocking = true;
  StreamRole role = StreamRole::created;
  std::string name = {};
};

// The operations that a stream has completed, and the nanoseconds in which it was neither empty nor waiting.
struct Activity {
  std::uint64_t operations = 0;
  std::int64_t busy_nanoseconds = 0;
};

// A queue of operations that run in order on one device. Stream objects of the layer above that have the same handle
// share one Stream.
//
// Any thread may enqueue. The operations of one thread keep their order. Dropping the last reference does not block,
// and pending work still completes.
class Stream : public RefCounted {
 public:
  Backend& backend() const noexcept { return backend_; }
  int priority() const noexcept { return options_.priority; }
  bool non_blocking() const noexcept { return options_.non_blocking; }
  StreamRole role() const noexcept { return options_.role; }
  const std::string& name() const noexcept { return options_.name; }

  // The newest point. It covers everything enqueued so far, but not the order that the legacy stream would add before
  // the next operation.
  Point issued() const noexcept { return issued_.load(std::memory_order_acquire); }

  // The equivalent of `cudaStream_t`: 1 and 2 for the default streams; unique among living streams for the others.
  virtual std::uintptr_t handle() const noexcept = 0;
  virtual Activity activity() const noexcept = 0;

  // The recorder that takes this stream's work while it is captured, else null. Threads other than the capturing one
  // use `Capture::recorder_of`.
  Stream* recording() const noexcept { return recording_.load(std::memory_order_acquire); }
  // The capture that this stream is a recorder of; null for a stream of a device.
  Capture* capture() const noexcept { return capture_; }

  // False: no operation of the stream has failed so far. Calls no driver.
  virtual bool may_have_failed() const noexcept { return false; }

  // The layer above counts its objects for the stream. One without any may live on, for an array that it used.
  void add_handle() noexcept { handles_.fetch_add(1, std::memory_order_relaxed); }
  void remove_handle() noexcept { handles_.fetch_sub(1, std::memory_order_relaxed); }
  // Waits for the point as `Backend::synchronize` does, on behalf of the whole device: a failure that was told does not
  // throw again if nobody can ask the stream any more.
  bool settle(Point point, std::chrono::nanoseconds timeout);

  // Tracks what the stream's operations come after. A pooled stream that is used again restarts its lane.
  Lane& lane() noexcept { return lane_; }
  const Lane& lane() const noexcept { return lane_; }

 protected:
  Stream(Backend& backend, const StreamOptions& options) : backend_(backend), options_(options) {}

  Backend& backend_;
  StreamOptions options_;
  std::atomic<Point> issued_{0};
  Capture* capture_ = nullptr;
  // For a pooled stream that is used again.
  void forget_recorder() noexcept { recorder_.reset(); }

 private:
  friend class Capture;
  friend class LegacyLanes;
  friend class Ordering;
  void forget_seen() noexcept {
    for (std::atomic<Lane::Version>* seen : {&task_seen_, &target_seen_, &legacy_seen_}) {
      seen->store(0, std::memory_order_relaxed);
    }
  }

  std::atomic<Stream*> recording_{nullptr};
  Ref<Stream> recorder_;  // guarded by the capture that it is in
  Lane lane_;
  // The versions that the lane followed last: of an enqueueing task, of a stream or record that it waited for, and of
  // the legacy stream.
  std::atomic<Lane::Version> task_seen_{0};
  std::atomic<Lane::Version> target_seen_{0};
  std::atomic<Lane::Version> legacy_seen_{0};
  std::atomic<bool> fresh_lane_{false};
  std::atomic<int> handles_{0};
};

// One stream's activity, for a report.
struct StreamActivity {
  std::string device;
  std::string stream;  // its name, or its handle in hexadecimal
  Activity activity;
};

// Sets whether the activity of streams that end is kept from now on.
void keep_activity(bool keep) noexcept;
// The activity of living streams, and of those that ended while it was kept; idle ones are left out.
std::vector<StreamActivity> all_activity();
// Backends call this just before `stream` ends.
void note_end(const Stream& stream);

// Notified once, when a point is completed or its stream has failed. Any thread may call `wake`, including a worker of
// the backend, so `wake` must neither block nor run Python. The caller keeps the waiter alive until `wake` is called,
// and may reuse or destroy it afterwards.
class Waiter {
 public:
  virtual void wake(const Ref<Failure>& failure) noexcept = 0;

 protected:
  ~Waiter() = default;

 private:
  friend class WaiterList;
  Waiter* next_ = nullptr;
  Waiter* later_ = nullptr;  // the first of a chain of those to be woken later
  Point point_ = 0;
  std::uint64_t arrival_ = 0;
};

}  // namespace anabranch
