#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "anabranch/lane.hpp"
#include "anabranch/stream.hpp"

namespace anabranch {

// What lanes learn from the order between a device's legacy stream and its blocking ones: an operation of either side
// comes after all that was put into the other side before it. Any thread.
class LegacyLanes {
 public:
  // Before an operation is put into the stream, or to find out what one would come after.
  void join(Stream& stream) {
    if (!stream.non_blocking()) join_other_side(stream);
  }
  // The same for what is no operation of the lane's, as a wait; handed to the `note` that follows. 0: there is no such
  // order for the stream.
  Lane::Version join_and_look(Stream& stream) {
    if (stream.non_blocking()) return 0;
    join_other_side(stream);
    return stream.lane().look();
  }
  // What an operation that is put into a blocking stream comes after, of the other side, with nobody told.
  Past coming(Stream& stream);
  // After an operation was put in, when it has advanced its lane. Only that makes order for the other side.
  void note(Stream& stream) {
    if (!stream.non_blocking() &&
        (stream.role() == StreamRole::legacy ? any_blocking_.load(std::memory_order_acquire)
                                             : !stream.fresh_lane_.load(std::memory_order_acquire))) {
      note_operation(stream);
    }
  }
  void note(Stream& stream, Lane::Version learned) {
    if (learned == 0) return;
    stream.lane().settle(learned);
    note(stream);
  }
  // The stream's record is about to be used for another one, whose lane begins anew, or to go.
  void leave(Stream& stream) noexcept;

 private:
  void join_other_side(Stream& stream);
  const Past& before_blocking();
  void note_operation(Stream& stream);

  std::atomic<Stream*> legacy_{nullptr};   // once it was used
  std::atomic<bool> any_blocking_{false};  // once one was used
  std::atomic<bool> any_fresh_{false};     // there is something for the legacy stream to learn
  std::atomic<Lane::Version> version_{0};  // of `past_`
  std::mutex mutex_;
  Past past_;                   // what is before and in the legacy stream's last operation
  std::vector<Stream*> fresh_;  // blocking streams that got work since the legacy stream's last operation
  Clock gone_;                  // what those knew that have gone since
};

}  // namespace anabranch
