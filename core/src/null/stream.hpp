#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <vector>

#include "anabranch/stream/event.hpp"
#include "anabranch/stream/host.hpp"
#include "anabranch/stream/stream.hpp"
#include "stream/waiter_list.hpp"

namespace anabranch::null {

class NullStream;

// The condition for an operation's completion, and its effects. Most have neither.
struct Operation {
  bool held = false;            // until a test releases it
  Ref<NullStream> target = {};  // a wait: until this stream has completed `until`
  Point until = 0;
  Ref<HostOperation> pending = {};
  Ref<Timestamp> stamp = {};

  Point point = 0;
  bool entered = false;
};

// Consequences of completed operations, to run with no lock held.
using Effects = std::vector<std::function<void()>>;

// A stream that keeps every order except the legacy stream's, and runs nothing. The thread that releases an operation
// also completes everything that follows, on all null devices of the process, before its call returns, unless another
// thread is already doing so.
class NullStream final : public Stream {
 public:
  NullStream(Backend& backend, const StreamOptions& options);
  ~NullStream() override;

  std::uintptr_t handle() const noexcept override;
  Activity activity() const noexcept override;
  bool may_have_failed() const noexcept override { return true; }

  // The living streams of a device.
  static std::vector<Ref<NullStream>> living(const Backend& backend);

  // Enqueues an operation. Call `run_ready` afterwards.
  Point append(Operation operation);
  // Advances the streams as far as possible.
  static void run_ready() noexcept;
  // Throws AsyncError if the stream failed at or before the point.
  bool reached(Point point) const;
  bool synchronize(Point point, std::chrono::nanoseconds timeout) const;
  bool add_waiter(Waiter& waiter, Point point);

  // Releases the held operations up to a point.
  void pass(Point point);
  // Fails the oldest pending operation, or else the next one.
  void fail(Ref<Failure> failure);

 private:
  bool step(Effects& effects);
  bool failed(Point point) const noexcept { return failure_ && failed_at_ <= point; }

  std::uintptr_t handle_ = 0;

  // Guarded by the one mutex that all null streams of the process share.
  std::deque<Operation> operations_;
  WaiterList waiters_;
  Point completed_ = 0;
  Point failed_at_ = 0;
  Ref<Failure> failure_;
};

// Requires a stream of a device of this kind.
inline NullStream& as_null(Stream& stream) noexcept { return static_cast<NullStream&>(stream); }

}  // namespace anabranch::null
