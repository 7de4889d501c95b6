#pragma once

#include <mutex>
#include <vector>

#include "anabranch/backend.hpp"
#include "memory.hpp"
#include "stream.hpp"

namespace anabranch::null {

// A call of a verb, with the names of its streams.
struct Call {
  std::string verb;  // the name of the function of Backend
  std::string stream = {};
  std::string other = {};  // the stream to wait for, or the kernel to launch
  Point point = 0;         // of the enqueued operation; for `wait`, `query` …: the point passed

  bool operator==(const Call&) const = default;
};

// A device that runs nothing and records its calls, for tests of code above backends. Operations complete at once,
// except those after a `HostOperation` and those that a test holds. The legacy stream has no order with the others.
// Lives until the process ends.
class NullBackend final : public Backend {
 public:
  // `host_memory`: one whose memory the host may touch, as far as its capabilities say.
  NullBackend(int index, std::size_t memory, bool host_memory = false);

  // The calls since the last `take_calls`.
  std::vector<Call> take_calls();
  // From now on operations stay pending until `complete` or `fail`.
  void hold();
  // Completes the held operations up to the point.
  void complete(Stream& stream, Point point);
  // Fails the oldest pending operation, and with it all later ones.
  void fail(Stream& stream, Ref<Failure> failure);

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

  void stop() noexcept override {}

 private:
  Ref<NullStream> open(StreamOptions options);
  Point enqueue(Call call, Stream& stream, Operation operation);
  void note(Call call);

  AddressSpace memory_;
  std::mutex mutex_;
  std::vector<Call> calls_;
  bool held_ = false;
  Ref<NullStream> legacy_;
};

}  // namespace anabranch::null
