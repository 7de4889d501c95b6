#include "anabranch/collective/nccl.hpp"

#include <utility>

#include "anabranch/backend.hpp"

namespace anabranch {
namespace {

constexpr int byte_type = 1;  // ncclUint8

template <class F, class... Arguments>
int invoke(void* function, Arguments... arguments) {
  return reinterpret_cast<F*>(function)(arguments...);
}

using Plain = int();
using Reduction = int(const void*, void*, std::size_t, int, int, void*, void*);
using Rooted = int(const void*, void*, std::size_t, int, int, int, void*, void*);
using Copied = int(const void*, void*, std::size_t, int, int, void*, void*);
using Gathered = int(const void*, void*, std::size_t, int, void*, void*);
using Sent = int(const void*, std::size_t, int, int, void*, void*);
using Received = int(void*, std::size_t, int, int, void*, void*);

void* as_pointer(std::uintptr_t handle) noexcept { return reinterpret_cast<void*>(handle); }

bool in_parts(Verb verb) noexcept { return verb == Verb::all_to_all || verb == Verb::gather || verb == Verb::scatter; }

}  // namespace

class NcclChannel::Work final : public ExternalWork {
 public:
  // `eager`: outside of graphs; called once, and counted by the channel.
  Work(Ref<NcclChannel> channel, std::vector<Transfer> transfers, std::string name, bool eager)
      : ExternalWork(std::move(name)), channel_(std::move(channel)), transfers_(std::move(transfers)), eager_(eager) {}

  void enqueue(std::uintptr_t stream) override {
    channel_->call(transfers_, stream);
    if (eager_) channel_->called_.fetch_add(1, std::memory_order_release);
  }

 private:
  const Ref<NcclChannel> channel_;
  const std::vector<Transfer> transfers_;
  const bool eager_;
};

Point NcclChannel::enqueue(Stream& stream, std::vector<Transfer> transfers, const Label& label) {
  Backend& device = stream.backend();
  const bool eager = stream.capture() == nullptr;
  auto work = make_ref<Work>(Ref<NcclChannel>::share(this), std::move(transfers), label.name, eager);
  if (!eager) return device.external(stream, std::move(work));
  const std::uint64_t before = enqueued_.load(std::memory_order_relaxed);
  if (called_.load(std::memory_order_acquire) != before) {
    // A stream holds an earlier call. This one must reach NCCL after it, too.
    const std::lock_guard lock(mutex_);
    if (!in_flight_.empty()) device.wait(stream, *in_flight_.back().stream, in_flight_.back().point);
  }
  const auto began = std::chrono::steady_clock::now();
  const Point point = device.external(stream, std::move(work));
  enqueued_.store(before + 1, std::memory_order_relaxed);
  const std::uint64_t number = label.common ? started_.fetch_add(1, std::memory_order_relaxed) + 1 : 0;
  const std::lock_guard lock(mutex_);
  in_flight_.push_back({number, label, Ref<Stream>::share(&stream), point, began});
  return point;
}

void NcclChannel::call(const std::vector<Transfer>& transfers, std::uintptr_t stream) {
  if (abandoned_.load(std::memory_order_acquire))
    throw Error(ErrorKind::collective, "the communicator of NCCL was aborted");
  const std::lock_guard lock(calling_);
  int status = 0;
  if (transfers.size() == 1 && !in_parts(transfers[0].verb)) {
    status = call(transfers[0], as_pointer(stream));
  } else {
    status = invoke<Plain>(functions_.group_start);
    for (const Transfer& each : transfers) {
      if (status == 0) status = call(each, as_pointer(stream));
    }
    const int ended = invoke<Plain>(functions_.group_end);
    if (status == 0) status = ended;
  }
  if (status == 0) return;
  const char* text = reinterpret_cast<const char* (*)(int)>(functions_.error_string)(status);
  throw Error(ErrorKind::collective, std::string("NCCL: ") + (text ? text : "unknown error"));
}

int NcclChannel::call(const Transfer& t, void* stream) const {
  void* const comm = as_pointer(communicator_);
  const void* const send_from = t.send ? t.send : t.receive;
  void* const receive_at = t.receive ? t.receive : const_cast<void*>(t.send);
  const auto count = static_cast<std::size_t>(t.count);
  const auto type = static_cast<int>(t.type);
  const auto op = static_cast<int>(t.op);
  switch (t.verb) {
    case Verb::all_reduce:
    case Verb::barrier:
      return invoke<Reduction>(functions_.all_reduce, send_from, receive_at, count, type, op, comm, stream);
    case Verb::reduce:
      return invoke<Rooted>(functions_.reduce, send_from, receive_at, count, type, op, t.peer, comm, stream);
    case Verb::broadcast:
      return invoke<Copied>(functions_.broadcast, send_from, receive_at, count, type, t.peer, comm, stream);
    case Verb::all_gather:
      return invoke<Gathered>(functions_.all_gather, t.send, t.receive, count, type, comm, stream);
    case Verb::reduce_scatter:
      return invoke<Reduction>(functions_.reduce_scatter, t.send, t.receive, count, type, op, comm, stream);
    case Verb::all_to_all: {
      const int status = send_parts(t, stream);
      return status ? status : receive_parts(t, stream);
    }
    case Verb::gather: {
      const int status = send(t.send, t, t.peer, stream);
      return status || !t.receive ? status : receive_parts(t, stream);
    }
    case Verb::scatter: {
      const int status = t.send ? send_parts(t, stream) : 0;
      return status ? status : receive(t.receive, t, t.peer, stream);
    }
    case Verb::send:
      return send(t.send, t, t.peer, stream);
    case Verb::receive:
      return receive(t.receive, t, t.peer, stream);
  }
  return 0;
}

int NcclChannel::send_parts(const Transfer& t, void* stream) const {
  int status = 0;
  for (int peer = 0; peer < size_ && status == 0; ++peer)
    status = send(static_cast<const char*>(t.send) + peer * t.count, t, peer, stream);
  return status;
}

int NcclChannel::receive_parts(const Transfer& t, void* stream) const {
  int status = 0;
  for (int peer = 0; peer < size_ && status == 0; ++peer)
    status = receive(static_cast<char*>(t.receive) + peer * t.count, t, peer, stream);
  return status;
}

int NcclChannel::send(const void* data, const Transfer& t, int peer, void* stream) const {
  return invoke<Sent>(functions_.send, data, static_cast<std::size_t>(t.count), byte_type, peer,
                      as_pointer(communicator_), stream);
}

int NcclChannel::receive(void* data, const Transfer& t, int peer, void* stream) const {
  return invoke<Received>(functions_.receive, data, static_cast<std::size_t>(t.count), byte_type, peer,
                          as_pointer(communicator_), stream);
}

// Requires the mutex. Operations that NCCL has got complete in their order: where the newest has, all have.
void NcclChannel::prune() noexcept {
  if (all_called() && !in_flight_.empty() && completed(in_flight_.back())) in_flight_.clear();
  while (!in_flight_.empty() && completed(in_flight_.front())) in_flight_.pop_front();
}

// Requires the mutex. A failure counts as completion.
bool NcclChannel::completed(const InFlight& operation) noexcept {
  try {
    return operation.stream->backend().query(*operation.stream, operation.point);
  } catch (const Error& error) {
    note_failure(error);
    return true;
  }
}

// Requires the mutex. A stream that has failed keeps the calls that it held.
void NcclChannel::note_failure(const Error& error) noexcept {
  if (!all_called() && failure_.empty()) failure_ = error.what();
}

Waiting NcclChannel::oldest() {
  const std::lock_guard lock(mutex_);
  prune();
  if (in_flight_.empty()) return {};
  const InFlight& oldest = in_flight_.front();
  const std::chrono::duration<double> age = std::chrono::steady_clock::now() - oldest.began;
  return {true, oldest.number, oldest.label, age.count()};
}

std::string NcclChannel::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void NcclChannel::finish() noexcept {
  for (;;) {
    Ref<Stream> stream;
    Point point = 0;
    {
      const std::lock_guard lock(mutex_);
      prune();
      if (in_flight_.empty()) return;
      stream = in_flight_.back().stream;
      point = in_flight_.back().point;
    }
    try {
      stream->backend().synchronize(*stream, point, std::chrono::hours(1));
    } catch (const Error& error) {
      const std::lock_guard lock(mutex_);
      note_failure(error);
    }
  }
}

std::vector<Ref<Stream>> NcclChannel::abandon() {
  abandoned_.store(true, std::memory_order_release);
  std::vector<Ref<Stream>> streams;
  const std::lock_guard lock(mutex_);
  for (const InFlight& each : in_flight_) streams.push_back(each.stream);
  in_flight_.clear();
  return streams;
}

}  // namespace anabranch
