#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "anabranch/graph/capture.hpp"

namespace anabranch {

// A device within a capture: its verbs add nodes and refuse whatever needs the work's results.
class CaptureBackend final : public Backend {
 public:
  CaptureBackend(Capture& capture, Backend& real) : capture_(capture), real_(real) {
    capabilities_ = real.capabilities();
  }
  Backend& device() noexcept override { return real_; }
  Capture* capture() noexcept override { return &capture_; }

  Ref<Stream> create_stream(StreamOptions options) override { return real_.create_stream(std::move(options)); }
  Ref<Stream> default_stream(StreamRole role) override { return real_.default_stream(role); }
  Ref<Stream> find_stream(std::uintptr_t handle) override { return real_.find_stream(handle); }
  std::vector<Ref<Stream>> streams() override { return real_.streams(); }

  std::vector<Record> frontier(Stream& stream) override;
  Point record(Stream& stream) override;
  Point record(Stream& stream, const EventOptions& options, Ref<Marker>& marker) override;
  std::optional<double> elapsed(const Record& begin, const Record& end) override;
  Point wait(Stream& stream, Stream& target, Point point, Marker* marker) override;
  bool query(Stream& stream, Point point, Marker* marker) override;
  bool known_completed(Stream&, Point) noexcept override { return false; }
  bool synchronize(Stream& stream, Point point, std::chrono::nanoseconds timeout, Marker* marker) override;
  bool flush(Stream& target, Point point, std::chrono::nanoseconds timeout) override;
  bool notify(Stream& stream, Point point, Waiter& waiter, Marker* marker) override;

  Allocation allocate(Stream* stream, std::size_t bytes, MemoryKind kind) override;
  void free(std::byte* pointer, std::size_t bytes, MemoryKind kind, std::vector<Use>& uses) noexcept override;
  std::size_t free_memory() override { return real_.free_memory(); }

  Point copy(Stream& stream, const Elements& dst, const Elements& src, std::int64_t count) override;
  Point fill(Stream& stream, const Elements& dst, const void* value, std::int64_t count) override;
  Point launch(Stream& stream, Kernel& kernel, const LaunchShape& shape,
               std::span<const std::uint64_t> arguments) override;
  Point launch_grid(Stream& stream, Kernel& kernel, const LaunchGrid& grid,
                    std::span<const std::uint64_t> arguments) override;
  Point external(Stream& stream, Ref<ExternalWork> work) override;
  Point suspend(Stream& stream, Ref<HostOperation> pending) override;

  Ref<Library> load_library(std::span<const std::byte> image) override { return real_.load_library(image); }
  std::unique_ptr<Activation> activate() override { return real_.activate(); }
  void stop() noexcept override {}

 private:
  Capture& capture_;
  Backend& real_;
};

}  // namespace anabranch
