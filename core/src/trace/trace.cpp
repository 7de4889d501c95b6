#include "anabranch/trace/trace.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <unordered_map>
#include <utility>

#include "anabranch/backend.hpp"

namespace anabranch {
namespace {

std::mutex traces_mutex;
std::atomic<std::uint64_t> numbers{0};
std::vector<Trace*> traces;

// The operation that this thread is enqueueing.
struct OpenOperation {
  Ref<Stream> stream;
  Ref<Span> span;
  TracedOperation wait;  // added within it; the operation begins at its end; no span: none was added
};

OpenOperation& open_here() noexcept {
  thread_local OpenOperation open;
  return open;
}

// A moment known on both the device's clock and the host's.
struct Meeting {
  Record record;
  std::atomic<std::int64_t> nanoseconds{0};
};

// The clocks drift apart, and the driver reports milliseconds between events as floats.
constexpr std::int64_t longest_since_meeting = 1'000'000'000;

std::shared_ptr<Meeting> meet(Backend& backend) {
  static auto* const mutex = new std::mutex;
  static auto* const last = new std::unordered_map<Backend*, std::shared_ptr<Meeting>>;
  std::lock_guard lock(*mutex);
  std::shared_ptr<Meeting>& meeting = (*last)[&backend];
  if (meeting && now_nanoseconds() - meeting->nanoseconds < longest_since_meeting) return meeting;
  auto made = std::make_shared<Meeting>();
  made->record.stream = backend.create_stream({});
  Stream& stream = *made->record.stream;
  std::int64_t uncertain = 0;
  // The shortest of a few, because the first finds the device asleep.
  for (int i = 0; i < 5; ++i) {
    Ref<Marker> marker;
    const std::int64_t before = now_nanoseconds();
    const Point point = backend.record(stream, {.timing = true}, marker);
    while (!backend.synchronize(stream, point, std::chrono::seconds(1), marker.get())) {
    }
    const std::int64_t after = now_nanoseconds();
    if (i > 0 && after - before >= uncertain) continue;
    uncertain = after - before;
    made->record.point = point;
    made->record.marker = std::move(marker);
    made->nanoseconds = before + uncertain / 2;
  }
  meeting = std::move(made);
  return meeting;
}

// A span between two events of the device.
class RecordedSpan final : public Span {
 public:
  explicit RecordedSpan(Stream& stream) : meeting_(meet(stream.backend())), opened_(now_nanoseconds()) {
    mark(begin_, stream);
  }

  void close(Stream& stream) { mark(end_, stream); }

  void read_times() override {
    if (end.load() != 0 || !begin_.marker || !end_.marker) return;
    std::int64_t known = meeting_->nanoseconds;
    const std::int64_t found = time_of(begin_);
    // No operation begins before the host has enqueued it. If one seems to, the meeting's host time is too early by
    // that much.
    if (found != 0 && found < opened_) {
      const std::int64_t least = known + opened_ - found;
      while (known < least && !meeting_->nanoseconds.compare_exchange_weak(known, least)) {
      }
    }
    begin = time_of(begin_);
    end = time_of(end_);
  }

 private:
  static void mark(Record& record, Stream& stream) {
    record.stream = Ref<Stream>::share(&stream);
    record.point = stream.backend().record(stream, {.timing = true}, record.marker);
  }

  // 0 if the time is not known, or not yet.
  std::int64_t time_of(const Record& record) const {
    try {
      const std::optional<double> since = record.stream->backend().elapsed(meeting_->record, record);
      return since ? meeting_->nanoseconds + static_cast<std::int64_t>(*since * 1e6) : 0;
    } catch (const Error&) {
      return 0;
    }
  }

  std::shared_ptr<Meeting> meeting_;
  std::int64_t opened_;
  Record begin_;
  Record end_;
};

}  // namespace

std::atomic<int> traces_on{0};
std::atomic<Site (*)()> calling_site{nullptr};

std::atomic<void (*)(std::uint64_t number)> correlate{nullptr};

std::int64_t now_nanoseconds() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Ref<Span> Backend::open_span(Stream& stream) { return make_ref<RecordedSpan>(stream); }

void Backend::close_span(Stream& stream, Span& span) { static_cast<RecordedSpan&>(span).close(stream); }

void Trace::start() {
  std::lock_guard lock(traces_mutex);
  if (std::find(traces.begin(), traces.end(), this) != traces.end()) return;
  std::int64_t never = 0;
  began_.compare_exchange_strong(never, now_nanoseconds());
  traces.push_back(this);
  traces_on.fetch_add(1);
}

void Trace::stop() {
  std::lock_guard lock(traces_mutex);
  if (std::erase(traces, this) != 0) traces_on.fetch_sub(1);
}

std::vector<TracedOperation> Trace::operations() const {
  std::lock_guard lock(mutex_);
  return operations_;
}

void publish(TracedOperation operation) {
  std::lock_guard lock(traces_mutex);
  for (Trace* trace : traces) {
    std::lock_guard trace_lock(trace->mutex_);
    trace->operations_.push_back(operation);
  }
}

std::vector<TracedOperation> traced_after(const Stream& stream, Point point) {
  std::vector<TracedOperation> found;
  std::lock_guard lock(traces_mutex);
  if (traces.empty()) return found;
  const Trace& longest = *traces.front();
  std::lock_guard trace_lock(longest.mutex_);
  for (auto each = longest.operations_.rbegin(); each != longest.operations_.rend(); ++each) {
    if (each->stream.get() != &stream || each->point == 0) continue;
    if (each->point <= point) break;
    found.push_back(*each);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

namespace {

// Ends the measurement of an open operation.
void end(const OpenOperation& open) {
  if (!open.span) return;
  if (const auto tell = correlate.load()) tell(0);
  open.stream->backend().close_span(*open.stream, *open.span);
}

void complete(Backend& backend, TracedOperation operation) {
  const auto find = calling_site.load(std::memory_order_relaxed);
  operation.backend = &backend;
  if (find) operation.site = find();
  publish(std::move(operation));
}

}  // namespace

void open_operation(Stream& stream) {
  if (stream.capture()) return;  // captured operations run in replays
  OpenOperation& open = open_here();
  end(open);  // an operation that was never closed because it failed
  open.wait = {};
  open.span = stream.backend().open_span(stream);
  open.span->number = numbers.fetch_add(1, std::memory_order_relaxed) + 1;
  open.stream = Ref<Stream>::share(&stream);
  if (const auto tell = correlate.load()) tell(open.span->number);
}

void close_operation(Stream& stream, TracedOperation operation) {
  if (stream.capture()) return;
  OpenOperation open = std::exchange(open_here(), {});
  end(open);
  if (open.stream.get() != &stream) return;  // the trace started in the middle of the operation
  if (open.wait.span) complete(stream.backend(), std::move(open.wait));
  operation.closed = stream.issued();
  operation.span = std::move(open.span);
  operation.stream = std::move(open.stream);
  complete(stream.backend(), std::move(operation));
}

void trace_instant(Backend& backend, TracedOperation operation) {
  operation.span = make_ref<Span>();
  operation.span->begin = operation.span->end = now_nanoseconds();
  complete(backend, std::move(operation));
}

void trace_host(Backend& backend, TracedOperation operation, std::int64_t since) {
  operation.span = make_ref<Span>();
  operation.span->begin = since;
  operation.span->end = now_nanoseconds();
  complete(backend, std::move(operation));
}

Point trace_wait(Stream& stream, Stream& target, Point point, Marker* marker, bool added) {
  open_operation(stream);
  const Point waited = stream.backend().wait(stream, target, point, marker);
  close_operation(stream, {.kind = OperationKind::wait,
                           .added = added,
                           .point = waited,
                           .source = Ref<Stream>::share(&target),
                           .source_point = point});
  return waited;
}

void trace_inner_wait(Stream& stream, Stream& target, Point point) {
  Backend& backend = stream.backend();
  const Point waited = backend.wait(stream, target, point, nullptr);
  OpenOperation& open = open_here();
  if (open.stream.get() != &stream) return;
  backend.close_span(stream, *open.span);
  open.wait = {.kind = OperationKind::wait,
               .added = true,
               .stream = open.stream,
               .point = waited,
               .closed = stream.issued(),
               .source = Ref<Stream>::share(&target),
               .source_point = point,
               .span = open.span};
  open.span = backend.open_span(stream);
  open.span->number = std::exchange(open.wait.span->number, 0);
}

}  // namespace anabranch
