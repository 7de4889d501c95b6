#include "backend.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>

namespace anabranch::null {

NullBackend::NullBackend(int index, std::size_t memory, bool host_memory) : memory_(memory) {
  capabilities_.kind = "null";
  capabilities_.index = index;
  capabilities_.name = "null " + std::to_string(index);
  capabilities_.total_memory = memory;
  capabilities_.highest_priority = -5;
  capabilities_.host_memory = host_memory;
  legacy_ = open({.non_blocking = false, .role = StreamRole::legacy, .name = "legacy"});
}

std::vector<Call> NullBackend::take_calls() {
  std::lock_guard lock(mutex_);
  return std::exchange(calls_, {});
}

void NullBackend::hold() {
  std::lock_guard lock(mutex_);
  held_ = true;
}

void NullBackend::complete(Stream& stream, Point point) { as_null(stream).pass(point); }

void NullBackend::fail(Stream& stream, Ref<Failure> failure) { as_null(stream).fail(std::move(failure)); }

Ref<NullStream> NullBackend::open(StreamOptions options) {
  options.priority = std::clamp(options.priority, capabilities_.highest_priority, capabilities_.lowest_priority);
  return make_ref<NullStream>(*this, options);
}

void NullBackend::note(Call call) {
  std::lock_guard lock(mutex_);
  calls_.push_back(std::move(call));
}

// Records the call, with the point of the operation unless the call has one.
Point NullBackend::enqueue(Call call, Stream& stream, Operation operation) {
  Point point = 0;
  {
    std::lock_guard lock(mutex_);
    operation.held = held_;
    point = as_null(stream).append(std::move(operation));
    if (call.point == 0) call.point = point;
    calls_.push_back(std::move(call));
  }
  NullStream::run_ready();
  return point;
}

Ref<Stream> NullBackend::create_stream(StreamOptions options) {
  note({"create_stream", options.name});
  return open(std::move(options));
}

Ref<Stream> NullBackend::default_stream(StreamRole role) {
  if (role == StreamRole::legacy) return legacy_;
  thread_local std::unordered_map<NullBackend*, Ref<NullStream>> own;
  Ref<NullStream>& stream = own[this];
  if (!stream) stream = open({.non_blocking = false, .role = StreamRole::per_thread, .name = "per-thread"});
  return stream;
}

Ref<Stream> NullBackend::find_stream(std::uintptr_t handle) {
  if (handle == 1) return default_stream(StreamRole::legacy);
  if (handle == 2) return default_stream(StreamRole::per_thread);
  for (Ref<NullStream>& stream : NullStream::living(*this)) {
    if (stream->handle() == handle) return std::move(stream);
  }
  throw Error(ErrorKind::value, "no stream of " + capabilities_.name + " has the handle " + std::to_string(handle));
}

std::vector<Ref<Stream>> NullBackend::streams() {
  auto living = NullStream::living(*this);
  return {std::make_move_iterator(living.begin()), std::make_move_iterator(living.end())};
}

Ref<Library> NullBackend::load_library(std::span<const std::byte>) {
  throw Error(ErrorKind::device, capabilities_.name + " runs no code");
}

}  // namespace anabranch::null
