#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "anabranch/error.hpp"
#include "anabranch/lane.hpp"
#include "anabranch/point.hpp"
#include "anabranch/ref.hpp"

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

// What a stream has done so far: operations completed, and nanoseconds in which it was at work rather than empty or
// waiting.
struct Activity {
  std::uint64_t operations = 0;
  std::int64_t busy_nanoseconds = 0;
};

// A queue of operations that run in the order in which they were put in, on one device. The record behind every stream
// object and handle of the layer above: two objects for one handle hold the same Stream.
//
// Any thread may enqueue; what one thread enqueues stays in its order. Dropping the last reference waits for nothing
// and loses nothing: work already enqueued completes.
class Stream : public RefCounted {
 public:
  Backend& backend() const noexcept { return backend_; }
  int priority() const noexcept { return options_.priority; }
  bool non_blocking() const noexcept { return options_.non_blocking; }
  StreamRole role() const noexcept { return options_.role; }
  const std::string& name() const noexcept { return options_.name; }

  // The newest point: covers everything enqueued by now, though not what the legacy stream's order would add before the
  // next operation.
  Point issued() const noexcept { return issued_.load(std::memory_order_acquire); }

  // What `cudaStream_t` is to CUDA: 1 and 2 for the default streams, unique among the living for the others.
  virtual std::uintptr_t handle() const noexcept = 0;
  virtual Activity activity() const noexcept = 0;

  // What records the stream's work in its stead while it is captured, else null. For others than the thread that
  // captures it: `Capture::recorder_of`.
  Stream* recording() const noexcept { return recording_.load(std::memory_order_acquire); }
  // Of which capture this is such a recorder; null for a stream of a device.
  Capture* capture() const noexcept { return capture_; }

  // What the stream's operations come after. That of a record used again begins anew.
  Lane& lane() noexcept { return lane_; }
  const Lane& lane() const noexcept { return lane_; }

 protected:
  Stream(Backend& backend, const StreamOptions& options) : backend_(backend), options_(options) {}

  Backend& backend_;
  StreamOptions options_;
  std::atomic<Point> issued_{0};
  Capture* capture_ = nullptr;
  // Of a record that is used again.
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
  // What its lane has followed last: of a task that enqueued, of a stream or record that it waited for, of the legacy
  // stream.
  std::atomic<Lane::Version> task_seen_{0};
  std::atomic<Lane::Version> target_seen_{0};
  std::atomic<Lane::Version> legacy_seen_{0};
  std::atomic<bool> fresh_lane_{false};
};

// One stream's activity, for a report.
struct StreamActivity {
  std::string device;
  std::string stream;  // its name, or its handle in hexadecimal
  Activity activity;
};

// From now on, whether streams that end leave their activity behind.
void keep_activity(bool keep) noexcept;
// The activity of the streams that live, and of those that ended since it is kept; those that did nothing are left out.
std::vector<StreamActivity> all_activity();
// For backends: `stream` is about to end.
void note_end(const Stream& stream);

// Told once when a point is reached or its stream has failed. The thread is any, possibly one of the backend's workers,
// so `wake` must neither block nor run Python. The waiter's storage belongs to the caller until `wake` is called, and
// again after.
class Waiter {
 public:
  virtual void wake(const Ref<Failure>& failure) noexcept = 0;

 protected:
  ~Waiter() = default;

 private:
  friend class WaiterList;
  Waiter* next_ = nullptr;
  Point point_ = 0;
};

}  // namespace anabranch
