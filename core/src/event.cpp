#include "anabranch/event.hpp"

#include <mutex>
#include <utility>

#include "anabranch/backend.hpp"

namespace anabranch {

Record Event::last() const {
  std::lock_guard guard(lock_);
  return last_;
}

void Event::record(Stream& stream) {
  if (&stream.backend() != &backend_) {
    const Capabilities& own = backend_.capabilities();
    const Capabilities& other = stream.backend().capabilities();
    throw Error(ErrorKind::device, "an event of " + own.kind + ":" + std::to_string(own.index) +
                                       " cannot be recorded on a stream of " + other.kind + ":" +
                                       std::to_string(other.index) + "; create the event with that device");
  }
  Ref<Stream> before;  // let go outside the lock, since that may recycle it
  std::lock_guard guard(lock_);
  Ref<Marker> marker;
  if (last_.marker && last_.marker->unique()) marker = std::move(last_.marker);
  try {
    last_.point = backend_.record(stream, options_, marker);
  } catch (...) {
    // What the marker stood for may be gone.
    if (!last_.marker) before = std::exchange(last_, Record{}).stream;
    throw;
  }
  last_.marker = std::move(marker);
  if (last_.stream.get() != &stream) before = std::exchange(last_.stream, Ref<Stream>::share(&stream));
}

void Event::wait(Stream& stream) const {
  const Record record = last();
  if (record.stream) stream.backend().wait(stream, *record.stream, record.point, record.marker.get());
}

bool Event::query() const {
  const Record record = last();
  return !record.stream || backend_.query(*record.stream, record.point, record.marker.get());
}

std::uintptr_t Event::handle() {
  std::lock_guard guard(lock_);
  if (!last_.stream && !last_.marker) last_.marker = backend_.make_marker(options_);
  const std::uintptr_t handle = last_.marker ? last_.marker->handle() : 0;
  return handle != 0 ? handle : reinterpret_cast<std::uintptr_t>(this);
}

double elapsed_milliseconds(const Record& begin, const Record& end) {
  return begin.stream->backend().elapsed(begin, end);
}

}  // namespace anabranch
