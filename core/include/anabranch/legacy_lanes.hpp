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
  // Before an operation is put into the stream.
  void join(Stream& stream) {
    if (!stream.non_blocking()) join_other_side(stream);
  }
  // After that, when it has advanced its lane.
  void note(Stream& stream) {
    if (!stream.non_blocking() && !stream.fresh_lane_.load(std::memory_order_acquire)) note_blocking(stream);
  }
  // The stream's record is about to be used for another one, whose lane begins anew, or to go.
  void leave(Stream& stream) noexcept;

 private:
  void join_other_side(Stream& stream);
  void note_blocking(Stream& stream);

  std::atomic<Stream*> legacy_{nullptr};  // once it was used
  std::atomic<bool> any_{false};
  // Blocking streams that got work since the legacy stream's last operation, and what those knew that have gone since.
  std::mutex mutex_;
  std::vector<Stream*> fresh_;
  Clock gone_;
};

}  // namespace anabranch
