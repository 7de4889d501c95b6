#include "capture_backend.hpp"

#include <algorithm>
#include <cstring>

namespace anabranch {
namespace {

CaptureStream& as_recorder(Stream& stream) noexcept { return static_cast<CaptureStream&>(stream); }

}  // namespace

std::vector<Record> CaptureBackend::frontier(Stream&) {
  capture_.refuse("the host cannot wait for captured work, which runs when the graph is launched");
}

bool CaptureBackend::query(Stream&, Point, Marker*) {
  capture_.refuse("captured work cannot be queried: it runs when the graph is launched");
}

bool CaptureBackend::synchronize(Stream&, Point, std::chrono::nanoseconds, Marker*) {
  capture_.refuse("the host cannot wait for captured work, which runs when the graph is launched");
}

bool CaptureBackend::flush(Stream&, Point, std::chrono::nanoseconds) {
  capture_.refuse("another library cannot use memory of captured work");
}

bool CaptureBackend::notify(Stream&, Point, Waiter&, Marker*) {
  capture_.refuse("captured work cannot be awaited: it runs when the graph is launched");
}

std::optional<double> CaptureBackend::elapsed(const Record&, const Record&) {
  throw Error(ErrorKind::event, "an event that was recorded in a capture has no time");
}

Point CaptureBackend::record(Stream& stream) {
  const std::lock_guard lock(capture_.mutex_);
  capture_.check();
  return stream.issued();
}

// A capture needs no marker of the device.
Point CaptureBackend::record(Stream& stream, const EventOptions&, Ref<Marker>& marker) {
  const Point point = record(stream);
  marker.reset();
  return point;
}

Point CaptureBackend::wait(Stream& stream, Stream& target, Point point, Marker*) {
  if (&stream == &target) return stream.issued();
  if (target.capture() != &capture_) {
    capture_.refuse(target.capture() ? "a captured stream cannot wait for work of another capture"
                                     : "a captured stream cannot wait for work from outside of the capture, which no "
                                       "replay would come after; wait for it before the capture, or let the stream "
                                       "that launches the graph wait");
  }
  const std::lock_guard lock(capture_.mutex_);
  capture_.check();
  CaptureStream& follower = as_recorder(stream);
  std::vector<std::uint32_t> tips = follower.tips();
  as_recorder(target).add_tips(point, tips);
  std::sort(tips.begin(), tips.end());
  tips.erase(std::unique(tips.begin(), tips.end()), tips.end());
  follower.stop_at(std::move(tips));
  return follower.issued_.fetch_add(1) + 1;
}

Allocation CaptureBackend::allocate(Stream* stream, std::size_t bytes, MemoryKind kind) {
  return capture_.allocate(as_recorder(*stream), bytes, kind);
}

void CaptureBackend::free(std::byte* pointer, std::size_t, MemoryKind, std::vector<Use>& uses) noexcept {
  const Ref<Capture> kept = Ref<Capture>::take(&capture_);  // adopts the reference that the allocation held
  capture_.free(pointer, uses);
}

Point CaptureBackend::copy(Stream& stream, const Elements& dst, const Elements& src, std::int64_t count) {
  return capture_.add(stream, NodeKind::copy, {}, CopyWork{dst, src, count});
}

Point CaptureBackend::fill(Stream& stream, const Elements& dst, const void* value, std::int64_t count) {
  FillWork work{dst, {}, count};
  std::memcpy(work.value, value, static_cast<std::size_t>(dst.layout.itemsize));
  return capture_.add(stream, NodeKind::fill, {}, std::move(work));
}

Point CaptureBackend::launch(Stream& stream, Kernel& kernel, const LaunchShape& shape,
                             std::span<const std::uint64_t> arguments) {
  return capture_.add(stream, NodeKind::kernel, kernel.name, KernelWork{Ref<Kernel>::share(&kernel), shape, arguments});
}

Point CaptureBackend::launch_grid(Stream& stream, Kernel& kernel, const LaunchGrid& grid,
                                  std::span<const std::uint64_t> arguments) {
  return capture_.add(stream, NodeKind::kernel, kernel.name, KernelWork{Ref<Kernel>::share(&kernel), grid, arguments});
}

Point CaptureBackend::external(Stream& stream, Ref<ExternalWork> work) {
  std::string name = work->name;
  return capture_.add(stream, NodeKind::external, std::move(name), std::move(work));
}

Point CaptureBackend::suspend(Stream&, Ref<HostOperation>) { capture_.refuse("a one-time hold cannot be captured"); }

}  // namespace anabranch
