#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <vector>

#include "anabranch/event.hpp"
#include "anabranch/host.hpp"
#include "anabranch/stream.hpp"
#include "stream/waiter_list.hpp"

namespace anabranch::null {

class NullStream;

// What has to happen before an operation is complete, and what happens when it is. Most need nothing.
struct Operation {
  bool held = false;            // until a test lets it pass
  Ref<NullStream> target = {};  // a wait: until this stream has come to `until`
  Point until = 0;
  Ref<Pending> pending = {};
  Ref<Timestamp> stamp = {};

  Point point = 0;
  bool entered = false;
};

// What follows from the streams' moves, to be done when no lock is held.
using Effects = std::vector<std::function<void()>>;

// A stream that keeps every order but that of the legacy stream, and runs nothing. The thread that lets an operation go
// on completes what follows from it, on all null devices of the process, before its call returns; unless another thread
// is at that already.
class NullStream final : public Stream {
 public:
  NullStream(Backend& backend, const StreamOptions& options);
  ~NullStream() override;

  std::uintptr_t handle() const noexcept override;
  Activity activity() const noexcept override;

  // The living streams of a device.
  static std::vector<Ref<NullStream>> living(const Backend& backend);

  // Enqueues an operation; `settle` is then to be called.
  Point append(Operation operation);
  // Lets the streams go on as far as they can.
  static void settle() noexcept;
  // Throws AsyncError if the stream failed at or before the point.
  bool reached(Point point) const;
  bool synchronize(Point point, std::chrono::nanoseconds timeout) const;
  bool add_waiter(Waiter& waiter, Point point);

  // Lets the held operations up to a point pass.
  void pass(Point point);
  // Fails the oldest operation that is not complete, or else the next one.
  void fail(Ref<Failure> failure);

 private:
  bool step(Effects& effects);
  bool failed(Point point) const noexcept { return failure_ && failed_at_ <= point; }

  std::uintptr_t handle_ = 0;

  // Guarded, as all there is of null streams, by one mutex of the process.
  std::deque<Operation> operations_;
  WaiterList waiters_;
  Point completed_ = 0;
  Point failed_at_ = 0;
  Ref<Failure> failure_;
};

}  // namespace anabranch::null
