#include "anabranch/graph/capture.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "anabranch/runtime.hpp"
#include "capture_backend.hpp"

namespace anabranch {

std::atomic<int> captures{0};

namespace {

// Held while a stream's recorder changes, and while a thread takes a reference to the current one.
SpinLock recorders;

}  // namespace

CaptureStream::CaptureStream(CaptureBackend& backend, Capture& capture, Stream& real)
    : Stream(backend, {.priority = real.priority(), .name = real.name()}),
      keeps_(Ref<Capture>::share(&capture)),
      real_(Ref<Stream>::share(&real)),
      handle_(real.handle()) {
  capture_ = &capture;
}

// -- beginning and end --

Capture::Capture(Ref<Capture> outer) : thread_(thread_serial()), outer_(std::move(outer)) {}

Capture::~Capture() = default;

Ref<Capture> Capture::begin(Stream& first, Ref<Capture> outer) {
  auto origin = Ref<Stream>::share(&first);
  if (outer && first.capture() == outer.get()) {
    // The outer capture passed its own recorder; capture the stream behind it.
    const std::lock_guard lock(outer->mutex_);
    outer->check();
    origin = static_cast<CaptureStream&>(first).real_;
  }
  if (origin->capture()) throw Error(ErrorKind::capture, "the stream takes part in another capture already");
  if (origin->role() == StreamRole::legacy)
    throw Error(ErrorKind::capture, "the legacy stream cannot be captured: every blocking stream is in order with it");
  auto capture = Ref<Capture>::take(new Capture(outer));
  capture->home_ = &origin->backend();
  if (outer) {
    const std::lock_guard lock(outer->mutex_);
    outer->check();
    outer->suspended_ = true;
    if (outer->exclusive()) capture->make_exclusive();
  }
  captures.fetch_add(1);
  try {
    capture->join(*origin);
  } catch (const Error&) {
    capture->abandon("it never began");
    throw;
  }
  return capture;
}

CaptureBackend& Capture::backend_of(Backend& real) {
  for (const auto& backend : backends_) {
    if (&backend->device() == &real) return *backend;
  }
  backends_.push_back(std::make_unique<CaptureBackend>(*this, real));
  return *backends_.back();
}

bool Capture::within(const Capture* other) const noexcept {
  const Capture* outer = outer_.get();
  while (outer && outer != other) outer = outer->outer_.get();
  return outer;
}

CaptureStream& Capture::join(Stream& real) {
  if (real.role() == StreamRole::legacy) {
    refuse("the legacy stream cannot take part in a capture; give the work a stream that waits for a captured one");
  }
  // Released outside the locks.
  Ref<Stream> before;
  Ref<Stream> last;
  const std::lock_guard lock(mutex_);
  check();
  {
    const std::lock_guard changing(recorders);
    before = Ref<Stream>::share(real.recording());
  }
  if (before && before->capture() == this) return static_cast<CaptureStream&>(*before);
  auto stream = make_ref<CaptureStream>(backend_of(real.backend()), *this, real);
  stream->before_ = before;
  last = stream;
  const std::lock_guard changing(recorders);
  // Another thread may have captured the stream meanwhile.
  if (real.recording() != before.get() || (before && !within(before->capture())))
    throw Error(ErrorKind::capture, "the stream takes part in another capture already");
  streams_.push_back(stream);
  // The outer capture keeps its own recorder alive.
  if (!before) std::swap(real.recorder_, last);
  real.recording_.store(stream.get(), std::memory_order_release);
  return *stream;
}

Stream& Capture::recorder_of(Stream& stream) {
  if (!stream.recording()) return stream;
  // More than the streams of one call.
  thread_local std::array<Ref<Stream>, 8> kept;
  thread_local std::size_t next = 0;
  Ref<Stream> recorder;
  {
    const std::lock_guard changing(recorders);
    Stream* const recording = stream.recording();
    if (!recording) return stream;
    recorder = Ref<Stream>::share(recording);
  }
  for (const Ref<Stream>& each : kept) {
    if (each == recorder) return *recorder;
  }
  next = (next + 1) % kept.size();
  kept[next] = std::move(recorder);
  return *kept[next];
}

Stream& Capture::follower(Stream& stream, Stream& target) {
  Capture* const capture = target.capture();
  if (!capture || stream.capture() == capture || (stream.capture() && !capture->active())) return stream;
  if (stream.capture()) {
    // In the body of a branch or loop, streams of the enclosing captures join as others do.
    if (!capture->within(stream.capture())) return stream;
    Ref<Stream> real;
    {
      const std::lock_guard lock(stream.capture()->mutex_);
      real = static_cast<CaptureStream&>(stream).real_;
    }
    return real ? capture->join(*real) : stream;
  }
  return capture->join(stream);
}

struct Capture::Held {
  std::vector<Ref<CaptureStream>> streams;
  std::vector<Ref<CaptureStream>> retired;  // these keep the nested captures alive, which keep this one alive
  std::map<Place, Operand> operands;
  std::vector<Access_> accesses;
  std::vector<GraphNode> nodes;
  std::vector<Moment> moments;
  std::vector<Ref<Work>> works;
};

// The capture's streams keep their state for whoever still holds a recorder.
Capture::Held Capture::detach() noexcept {
  active_.store(false);
  recent_ = {};
  {
    const std::lock_guard changing(recorders);
    for (const Ref<CaptureStream>& stream : streams_) {
      const Stream* const now = stream->real_->recording();
      if (!now || (now->capture() != this && !now->capture()->within(this))) continue;  // an outer one ended before
      Stream* const before = stream->before_.get();
      stream->real_->recording_.store(before && before->capture()->active() ? before : nullptr);
    }
  }
  return {std::exchange(streams_, {}),  std::exchange(retired_, {}), std::exchange(operands_, {}),
          std::exchange(accesses_, {}), std::exchange(nodes_, {}),   std::exchange(moments_, {}),
          std::exchange(works_, {})};
}

void Capture::leave(Held held) noexcept {
  captures.fetch_sub(1);
  for (const Ref<CaptureStream>& stream : held.streams) {
    Ref<Stream> real;
    Ref<Stream> before;
    const std::lock_guard lock(mutex_);
    real = std::move(stream->real_);
    before = std::move(stream->before_);
  }
  if (!outer_) return;
  const std::lock_guard lock(outer_->mutex_);
  outer_->suspended_ = false;
  if (!outer_->active()) return;
  outer_->retired_.insert(outer_->retired_.end(), held.streams.begin(), held.streams.end());
}

void Capture::abandon(const std::string& reason) noexcept {
  Held held;
  std::vector<Ref<Storage>> living;
  {
    const std::lock_guard lock(mutex_);
    if (!active()) return;
    reason_ = reason;
    living = hand_over_living();
    held = detach();
  }
  leave(std::move(held));
  for (const Ref<Storage>& storage : living) storage->share();
  release_blocks();
}

std::string Capture::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

Error Capture::error() const {
  const std::string why = reason_.empty()
                              ? "what was recorded in it, such as an event, is only part of the graph; record "
                                "an event anew after the launch"
                              : reason_;
  return {ErrorKind::capture, "the capture has ended: " + why};
}

void Capture::check() const {
  if (!active()) throw error();
  if (suspended_) {
    throw Error(
        ErrorKind::capture,
        "a stream of the capture is used in the body of a branch or loop without waiting for the body's stream");
  }
}

void Capture::refuse(const std::string& what) {
  {
    const std::lock_guard lock(mutex_);
    if (!active()) throw error();
  }
  if (thread_serial() == thread_) {
    for (auto capture = Ref<Capture>::share(this); capture; capture = capture->outer_) capture->abandon(what);
  }
  throw Error(ErrorKind::capture, what);
}

Ref<Graph> Capture::end(Ref<Works>& works) {
  auto graph = make_ref<Graph>();
  works = make_ref<Works>();
  Held held;
  std::vector<Ref<Storage>> living;
  {
    const std::lock_guard lock(mutex_);
    check();
    graph->home = home_;
    living = hand_over_living();
    graph->memory = living;
    graph->nodes = std::move(nodes_);
    works->of = std::move(works_);
    auto& [touches, kept] = graph->accesses;
    for (auto& [place, operand] : operands_) {
      kept.insert(kept.end(), std::make_move_iterator(operand.kept.begin()),
                  std::make_move_iterator(operand.kept.end()));
    }
    for (Own& own : own_) {
      if (own.used) continue;
      // No array refers to this memory any more. Only replays use it, of this graph and of any graph that contains it.
      graph->memory.push_back(Storage::make(*own.device, own.kind, own.pointer, own.bytes));
      graph->memory.back()->accesses().begin_with(std::move(own.uses));
      touches.push_back({own.node, graph->memory.back().get(), Footprint(0, own.bytes), Access::write});
    }
    kept.insert(kept.end(), graph->memory.begin(), graph->memory.end());
    touches.reserve(touches.size() + accesses_.size());
    for (Access_& access : accesses_) {
      // Memory that was freed and allocated again belongs to the storage that has it now.
      Storage* storage = access.storage;
      if (access.own != none) storage = own_[access.own].used ? own_[access.own].storage : nullptr;
      if (storage) touches.push_back({access.node, storage, std::move(access.where), access.access});
    }
    own_.clear();
    held = detach();
  }
  leave(std::move(held));
  // While the capture owned it, the memory was not listed when its address was shown.
  for (const Ref<Storage>& storage : living) storage->share();
  return graph;
}

// -- nodes --

void Capture::reduce(std::vector<std::uint32_t>& nodes) const {
  if (nodes.size() < 2) return;
  std::erase_if(nodes, [&](std::uint32_t node) {
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](std::uint32_t other) { return other != node && moments_[other].follows(moments_[node]); });
  });
}

std::uint32_t Capture::add_node(NodeKind kind, std::string name, Backend& device, std::size_t bytes,
                                std::vector<std::uint32_t> after, Moment when, Work::What&& what) {
  reduce(after);
  const auto node = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({kind, std::move(name), &device, std::move(after), bytes});
  moments_.push_back(std::move(when));
  works_.push_back(make_ref<Work>(std::move(what)));
  return node;
}

Point Capture::push(CaptureStream& stream, NodeKind kind, std::string name, std::size_t bytes, Work::What&& what) {
  check();
  const std::uint32_t node = add_node(kind, std::move(name), stream.backend().device(), bytes, stream.tips(),
                                      stream.lane().advance(), std::move(what));
  stream.stop_at(node);
  return stream.issued_.fetch_add(1) + 1;
}

Point Capture::add(Stream& stream, NodeKind kind, std::string name, Work::What&& what) {
  const std::lock_guard lock(mutex_);
  return push(static_cast<CaptureStream&>(stream), kind, std::move(name), 0, std::move(what));
}

void Capture::set_origin(const Stream& stream, Ref<RefCounted> origin, Point point) {
  const std::lock_guard lock(mutex_);
  if (!active()) return;
  const std::uint32_t node = static_cast<const CaptureStream&>(stream).node_at(point);
  if (node != none) std::swap(nodes_[node].origin, origin);  // released outside the lock
}

}  // namespace anabranch
