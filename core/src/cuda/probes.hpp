#pragma once

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "anabranch/lock.hpp"
#include "event.hpp"

namespace anabranch::cuda {

// Events recorded at a stream's end, by the newest point that each covers. Requires the stream's mutex.
class Probes {
 public:
  // With more events than this, points between the oldest are no longer distinguished.
  static constexpr std::size_t most = 16;

  struct Probe {
    Point point;
    Ref<CudaMarker> marker;
    Point marks = 0;  // the first point that completes only with the event; 0: unknown
  };

  // The oldest event that covers the point, or null.
  Ref<CudaMarker> covering(Point point) const {
    for (const Probe& probe : probes_) {
      if (probe.point >= point) return probe.marker;
    }
    return nullptr;
  }

  // Adds the newest event. Drops those that cover nothing after `completed`.
  Ref<CudaMarker> add(Probe probe, Point completed) {
    probes_.push_back(std::move(probe));
    auto over = std::find_if(probes_.begin(), probes_.end() - 1,
                             [completed](const Probe& kept) { return kept.point > completed; });
    // Queries for the oldest probe's points use the next one, which covers more.
    if (over == probes_.begin() && probes_.size() > most) {
      if (over->marks != 0) over[1].marks = over->marks;
      ++over;
    }
    probes_.erase(probes_.begin(), over);
    return probes_.back().marker;
  }

  // The event that completes the marks up to a point, or null, and whether there is no later mark.
  std::pair<const CudaMarker*, bool> last_mark(Point point) const noexcept {
    const auto after =
        std::find_if(probes_.begin(), probes_.end(), [point](const Probe& probe) { return probe.marks > point; });
    const auto last = std::find_if(std::make_reverse_iterator(after), probes_.rend(),
                                   [](const Probe& probe) { return probe.marks != 0; });
    return {last == probes_.rend() ? nullptr : last->marker.get(), after == probes_.end()};
  }

  void clear() noexcept { probes_.clear(); }

 private:
  std::vector<Probe> probes_;
};

// The event by which other streams wait for a stream. One serves every wait: recording it again does not affect earlier
// waits for it. Any thread.
class LeadEvent {
 public:
  // The event, which covers the point. Where it does not yet, `record(event)` makes it if it is null, records it at the
  // stream's end, and returns the newest point that it covers then.
  template <class Record>
  CUevent covering(Point point, Record&& record) {
    std::lock_guard guard(lock_);
    if (covered_ < point) covered_ = record(marker_);
    return marker_->event;
  }

 private:
  SpinLock lock_;
  Ref<CudaMarker> marker_;
  Point covered_ = 0;
};

}  // namespace anabranch::cuda
