#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "anabranch/backend.hpp"
#include "memory.hpp"
#include "pool.hpp"
#include "stream.hpp"

namespace anabranch::cpu {

// A device made of worker threads of this process. Lives until the process ends.
class CpuBackend final : public Backend {
 public:
  CpuBackend(int index, int workers, std::size_t memory, HostSource pinned = {});

  Ref<Stream> create_stream(StreamOptions options) override;
  Ref<Stream> default_stream(StreamRole role) override;
  Ref<Stream> find_stream(std::uintptr_t handle) override;
  std::vector<Ref<Stream>> streams() override;

  std::vector<Record> frontier(Stream& stream) override;
  Point record(Stream& stream) override;
  Point record(Stream& stream, const EventOptions& options, Ref<Marker>& marker) override;
  std::optional<double> elapsed(const Record& begin, const Record& end) override;
  Point wait(Stream& stream, Stream& target, Point point, Marker* marker = nullptr) override;
  bool query(Stream& stream, Point point, Marker* marker = nullptr) override;
  bool synchronize(Stream& stream, Point point, std::chrono::nanoseconds timeout, Marker* marker = nullptr) override;
  bool notify(Stream& stream, Point point, Waiter& waiter, Marker* marker = nullptr) override;

  Allocation allocate(Stream* stream, std::size_t bytes, MemoryKind kind) override;
  void free(std::byte* pointer, std::size_t bytes, MemoryKind kind, std::vector<Use>& uses) noexcept override;
  std::size_t free_memory() override;

  Point copy(Stream& stream, const Elements& dst, const Elements& src, std::int64_t count) override;
  Point fill(Stream& stream, const Elements& dst, const void* value, std::int64_t count) override;
  Point launch(Stream& stream, Kernel& kernel, const LaunchShape& shape,
               std::span<const std::uint64_t> arguments) override;
  Point launch_grid(Stream& stream, Kernel& kernel, const LaunchGrid& grid,
                    std::span<const std::uint64_t> arguments) override;
  Point suspend(Stream& stream, Ref<HostOperation> pending) override;

  Ref<Library> load_library(std::span<const std::byte> image) override;

  Ref<Executable> instantiate(const Ref<Graph>& graph, const Ref<Works>& works) override;

  Ref<Span> open_span(Stream& stream) override;
  void close_span(Stream& stream, Span& span) override;

  void control(explore::Controller* controller) override;
  bool controlled() const noexcept override { return true; }
  bool known_completed(Stream& stream, Point point) noexcept override;

  void stop() noexcept override;

  // Throws Error(device) for a kernel launched with blocks.
  [[noreturn]] void refuse_blocks(const Kernel& kernel) const;
  Pool& pool() noexcept { return pool_; }

 private:
  friend class CpuStream;
  Ref<CpuStream> open(StreamOptions options);
  void recycle(CpuStream& stream) noexcept;
  void begin_run(CpuStream& stream);

  // Pinned memory is slow to allocate and to release, so it has its own cache.
  MemoryPool& memory_of(MemoryKind kind) noexcept { return kind == MemoryKind::pinned ? pinned_ : memory_; }

  // A block that was freed in a run of an exploration. What a run finds at an address must not depend on the schedule,
  // so the memory is used again after the run.
  struct Held {
    std::byte* pointer;
    std::size_t bytes;
    MemoryKind kind;
    std::vector<Use> uses;
  };

  Pool pool_;
  MemoryPool memory_;
  MemoryPool pinned_;
  LegacyOrder order_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<CpuStream>> all_;  // all streams ever created; `idle_` lists those not in use
  std::vector<CpuStream*> idle_;
  std::vector<Held> held_;
  // The streams that a run has opened, until it ends: whether others come after them must not depend on the schedule.
  std::vector<Ref<CpuStream>> opened_;
  Ref<CpuStream> legacy_;
};

}  // namespace anabranch::cpu
