#include "backend.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "task.hpp"

namespace anabranch::cpu {

CpuBackend::CpuBackend(int index, int workers, std::size_t memory, HostSource pinned)
    : pool_("anabranch-cpu" + std::to_string(index), workers),
      memory_("cpu:" + std::to_string(index), memory),
      pinned_("cpu:" + std::to_string(index), memory, pinned) {
  capabilities_.kind = "cpu";
  capabilities_.index = index;
  capabilities_.name =
      "CPU " + std::to_string(index) + " (" + std::to_string(workers) + (workers == 1 ? " worker)" : " workers)");
  capabilities_.total_memory = memory;
  capabilities_.lowest_priority = 0;
  capabilities_.highest_priority = -1;
  capabilities_.workers = workers;
  capabilities_.host_memory = true;
  legacy_ = open({.non_blocking = false, .role = StreamRole::legacy, .name = "legacy"});
  order_.legacy = legacy_.get();
}

Ref<CpuStream> CpuBackend::open(StreamOptions options) {
  options.priority = std::clamp(options.priority, capabilities_.highest_priority, capabilities_.lowest_priority);
  std::unique_lock lock(mutex_);
  if (idle_.empty()) {
    all_.push_back(std::make_unique<CpuStream>(*this, pool_, order_));
    CpuStream* const made = all_.back().get();
    made->open(std::move(options));
    lock.unlock();
    begin_run(*made);
    return Ref<CpuStream>::take(made);
  }
  CpuStream* stream = idle_.back();
  idle_.pop_back();
  stream->open(std::move(options));
  stream->revive();
  lock.unlock();
  begin_run(*stream);
  return Ref<CpuStream>::take(stream);
}

// Resets the stream for reuse. Nothing refers to it any more, so nothing can query its past.
void CpuBackend::recycle(CpuStream& stream) noexcept {
  note_end(stream);
  legacy_lanes().leave(stream);
  stream.legacy_seen_ = 0;
  stream.fresh_ = false;
  unraised().add(std::move(stream.failure_));
  stream.failure_.reset();
  stream.failed_at_.store(CpuStream::never, std::memory_order_relaxed);
  stream.operations_.store(0, std::memory_order_relaxed);
  stream.busy_.store(0, std::memory_order_relaxed);
  std::lock_guard lock(mutex_);
  idle_.push_back(&stream);
}

Ref<Stream> CpuBackend::create_stream(StreamOptions options) { return open(std::move(options)); }

Ref<Stream> CpuBackend::default_stream(StreamRole role) {
  if (role == StreamRole::legacy) return legacy_;
  thread_local std::unordered_map<CpuBackend*, Ref<CpuStream>> own;
  Ref<CpuStream>& stream = own[this];
  if (!stream) stream = open({.non_blocking = false, .role = StreamRole::per_thread, .name = "per-thread"});
  return stream;
}

Ref<Stream> CpuBackend::find_stream(std::uintptr_t handle) {
  if (handle == 1) return default_stream(StreamRole::legacy);
  if (handle == 2) return default_stream(StreamRole::per_thread);
  std::lock_guard lock(mutex_);
  for (const auto& stream : all_) {
    if (reinterpret_cast<std::uintptr_t>(stream.get()) == handle && stream->try_retain())
      return Ref<Stream>::take(stream.get());
  }
  throw Error(ErrorKind::value,
              "no stream of cpu:" + std::to_string(capabilities_.index) + " has the handle " + std::to_string(handle));
}

std::vector<Ref<Stream>> CpuBackend::streams() {
  // A stream does not live on for freed memory.
  memory_.reclaim();
  pinned_.reclaim();
  std::vector<Ref<Stream>> living;
  std::lock_guard lock(mutex_);
  for (const auto& stream : all_) {
    if (stream->try_retain()) living.push_back(Ref<Stream>::take(stream.get()));
  }
  return living;
}

Ref<Library> CpuBackend::load_library(std::span<const std::byte>) {
  throw Error(ErrorKind::device, "cpu:" + std::to_string(capabilities_.index) + " runs no compiled GPU code");
}

Ref<Span> CpuBackend::open_span(Stream& stream) {
  auto span = make_ref<Span>();
  CpuStream::measure(&as_cpu(stream), span.get());
  return span;
}

// A span in which nothing was enqueued, as for a record or a wait for completed work, measures a mark in the stream.
void CpuBackend::close_span(Stream& stream, Span& span) {
  if (span.unique() && span.end.load() == 0) as_cpu(stream).push(std::make_unique<MarkTask>());
  CpuStream::measure(nullptr, nullptr);
}

void CpuBackend::stop() noexcept { pool_.stop(std::chrono::seconds(5)); }

}  // namespace anabranch::cpu
