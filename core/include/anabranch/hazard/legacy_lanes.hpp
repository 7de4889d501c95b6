#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "anabranch/hazard/lane.hpp"
#include "anabranch/stream/stream.hpp"

namespace anabranch {

// Records the order between a device's legacy stream and its blocking streams in their lanes: an operation of either
// side comes after everything enqueued before on the other side. Any thread may call any member.
class LegacyLanes {
 public:
  // Call this before an operation is enqueued in the stream, or to find what such an operation would come after.
  void join(Stream& stream) {
    if (!stream.non_blocking()) join_other_side(stream);
  }
  // The same before a wait, or anything else that is no operation of the lane. Pass the result to the `note` that
  // follows. 0: the stream has no such order.
  Lane::Version join_and_snapshot(Stream& stream) {
    if (stream.non_blocking()) return 0;
    join_other_side(stream);
    return stream.lane().snapshot();
  }
  // What an operation enqueued in a blocking stream would come after on the other side. Updates no blocking stream's
  // lane.
  Past coming(Stream& stream);
  // Call this after an operation was enqueued and has advanced its lane. It makes order for the other side.
  void note(Stream& stream) {
    if (!stream.non_blocking() &&
        (stream.role() == StreamRole::legacy ? any_blocking_.load(std::memory_order_acquire)
                                             : !stream.fresh_lane_.load(std::memory_order_acquire))) {
      note_operation(stream);
    }
  }
  void note(Stream& stream, Lane::Version snapshot) {
    if (snapshot == 0) return;
    stream.lane().settle(snapshot);
    note(stream);
  }
  // Call this before the stream object is reused, with a new lane, or destroyed.
  void leave(Stream& stream) noexcept;

 private:
  void join_other_side(Stream& stream);
  const Past& before_blocking();
  void note_operation(Stream& stream);

  std::atomic<Stream*> legacy_{nullptr};   // set at its first use
  std::atomic<bool> any_blocking_{false};  // set at the first use of one
  std::atomic<bool> any_fresh_{false};     // the legacy stream's lane has updates to join
  std::atomic<Lane::Version> version_{0};  // of `past_`
  std::mutex mutex_;
  Past past_;                   // the legacy stream's last operation and everything before it
  std::vector<Stream*> fresh_;  // blocking streams that have enqueued since the legacy stream's last operation
  Clock gone_;                  // the pasts of such streams that have been destroyed since
};

}  // namespace anabranch
