// The verbs of "order" in `Backend`.
#include <algorithm>
#include <chrono>
#include <thread>

#include "backend.hpp"

namespace anabranch::cuda {
namespace {

// The time for which a host thread polls without sleeping.
constexpr auto spin_time = std::chrono::microseconds(200);
constexpr auto shortest_sleep = std::chrono::microseconds(10);
constexpr auto longest_sleep = std::chrono::microseconds(100);

CudaMarker* as_marker(Marker* marker) noexcept { return static_cast<CudaMarker*>(marker); }

// Polls, at intervals that grow with the waiting time, for at most `timeout`. Returns the last answer.
template <class Ask>
bool ask_until(std::chrono::nanoseconds timeout, bool spins, Ask&& ask) {
  using Clock = std::chrono::steady_clock;
  const auto began = Clock::now();
  // A timeout that stands for forever must not overflow the clock.
  const auto limit = std::min<std::chrono::nanoseconds>(timeout, std::chrono::years(1));
  while (true) {
    const auto waited = Clock::now() - began;
    if (waited >= limit) return false;
    if (!spins || waited > spin_time) {
      auto sleep = std::clamp<Clock::duration>(waited / 32, shortest_sleep, longest_sleep);
      std::this_thread::sleep_for(std::min<Clock::duration>(sleep, limit - waited));
    }
    if (ask()) return true;
  }
}

}  // namespace

std::vector<Record> CudaBackend::frontier(Stream& stream) {
  std::vector<Record> records{{Ref<Stream>::share(&stream), as_own(stream).newest(), nullptr}};
  if (stream.role() != StreamRole::legacy) return records;
  for (Ref<Stream>& other : held_streams()) {
    if (other->non_blocking() || other.get() == &stream) continue;
    const Point point = as_own(*other).newest();
    records.push_back({std::move(other), point, nullptr});
  }
  return records;
}

Point CudaBackend::newest(Stream& stream) { return as_own(stream).newest(); }

Point CudaBackend::record(Stream& stream) { return as_own(stream).record(); }

Point CudaBackend::record(Stream& stream, const EventOptions& options, Ref<Marker>& marker) {
  return as_own(stream).record(options, marker);
}

Ref<Marker> CudaBackend::make_marker(const EventOptions& options) {
  const ContextScope scope(open());
  return events_.take(event_flags(options));
}

// The driver checks whether both are completed, so no query is needed first.
std::optional<double> CudaBackend::elapsed(const Record& begin, const Record& end) {
  if (&end.stream->backend() != this) {
    throw Error(ErrorKind::event, "the end event is not of " + alias() + ", and two devices have no clock in common");
  }
  if (Ref<Failure> failed = failure()) throw AsyncError(std::move(failed));
  const auto& first = static_cast<const CudaMarker&>(*begin.marker);
  const auto& last = static_cast<const CudaMarker&>(*end.marker);
  if (!first.recorded() || !last.recorded()) return std::nullopt;
  float milliseconds = 0;
  const ContextScope scope(context_);
  if (!done(cuda::elapsed(milliseconds, first.event, last.event), "reading event times")) return std::nullopt;
  return milliseconds;
}

Point CudaBackend::wait(Stream& stream, Stream& target, Point point, Marker* marker) {
  return as_own(stream).wait(target, point, marker);
}

bool CudaBackend::query(Stream& stream, Point point, Marker* marker) {
  return as_own(stream).query(point, as_marker(marker));
}

bool CudaBackend::synchronize(Stream& stream, Point point, std::chrono::nanoseconds timeout, Marker* marker) {
  if (query(stream, point, marker)) return true;
  const bool spins = !marker || !(as_marker(marker)->flags & CU_EVENT_BLOCKING_SYNC);
  return ask_until(timeout, spins, [&] {
    const Asking asking(*this);
    return query(stream, point, marker);
  });
}

bool CudaBackend::flush(Stream& target, Point point, std::chrono::nanoseconds timeout) {
  CudaStream* stream = as_cuda(target);
  if (!stream) return target.backend().synchronize(target, point, timeout);
  const auto known = [&] { return stream->submitted() >= point || stream->failure_at(point); };
  return known() || ask_until(timeout, true, known);
}

bool CudaBackend::notify(Stream& stream, Point point, Waiter& waiter, Marker* marker) {
  return as_own(stream).notify(point, as_marker(marker), waiter);
}

}  // namespace anabranch::cuda
