#include "anabranch/event.hpp"

#include "anabranch/backend.hpp"

namespace anabranch {

Record Event::last() const {
  std::lock_guard lock(mutex_);
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
  Record record;
  record.stream = Ref<Stream>::share(&stream);
  if (options_.timing) record.stamp = make_ref<Timestamp>();
  record.point = backend_.record(stream, record.stamp.get());
  // The old record is let go outside the lock, since that may recycle its stream.
  std::lock_guard lock(mutex_);
  std::swap(last_, record);
}

void Event::wait(Stream& stream) const {
  const Record record = last();
  if (record.stream) stream.backend().wait(stream, *record.stream, record.point);
}

bool Event::query() const {
  const Record record = last();
  return !record.stream || backend_.query(*record.stream, record.point);
}

double elapsed_milliseconds(const Record& begin, const Record& end) noexcept {
  return static_cast<double>(end.stamp->nanoseconds.load() - begin.stamp->nanoseconds.load()) * 1e-6;
}

}  // namespace anabranch
