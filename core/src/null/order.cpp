// The verbs of "order" in `Backend`.
#include "backend.hpp"

namespace anabranch::null {

std::vector<Record> NullBackend::frontier(Stream& stream) {
  return {{Ref<Stream>::share(&stream), stream.issued(), nullptr}};
}

Point NullBackend::record(Stream& stream) {
  note({"record", stream.name(), {}, stream.issued()});
  return stream.issued();
}

Point NullBackend::record(Stream& stream, const EventOptions& options, Ref<Marker>& marker) {
  if (!options.timing) return record(stream);
  auto stamp = make_ref<Timestamp>();
  marker = stamp;
  return enqueue({"record", stream.name()}, stream, {.stamp = std::move(stamp)});
}

std::optional<double> NullBackend::elapsed(const Record& begin, const Record& end) {
  for (const Record* record : {&begin, &end}) {
    if (!as_null(*record->stream).reached(record->point)) return std::nullopt;
  }
  const auto time = [](const Record& record) {
    return static_cast<const Timestamp&>(*record.marker).nanoseconds.load();
  };
  return static_cast<double>(time(end) - time(begin)) * 1e-6;
}

Point NullBackend::wait(Stream& stream, Stream& target, Point point, Marker*) {
  return enqueue({"wait", stream.name(), target.name(), point}, stream,
                 {.target = Ref<NullStream>::share(&as_null(target)), .until = point});
}

bool NullBackend::query(Stream& stream, Point point, Marker*) {
  note({"query", stream.name(), {}, point});
  return as_null(stream).reached(point);
}

bool NullBackend::synchronize(Stream& stream, Point point, std::chrono::nanoseconds timeout, Marker*) {
  note({"synchronize", stream.name(), {}, point});
  return as_null(stream).synchronize(point, timeout);
}

bool NullBackend::notify(Stream& stream, Point point, Waiter& waiter, Marker*) {
  note({"notify", stream.name(), {}, point});
  return as_null(stream).add_waiter(waiter, point);
}

}  // namespace anabranch::null
