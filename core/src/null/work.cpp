// The verbs of "work" in `Backend`.
#include "backend.hpp"

namespace anabranch::null {

Point NullBackend::copy(Stream& stream, const Elements&, const Elements&, std::int64_t) {
  return enqueue({"copy", stream.name()}, stream, {});
}

Point NullBackend::fill(Stream& stream, const Elements&, const void*, std::int64_t) {
  return enqueue({"fill", stream.name()}, stream, {});
}

Point NullBackend::launch(Stream& stream, Kernel& kernel, const LaunchShape&, std::span<const std::uint64_t>) {
  return enqueue({"launch", stream.name(), kernel.name}, stream, {});
}

Point NullBackend::launch_grid(Stream& stream, Kernel& kernel, const LaunchGrid&, std::span<const std::uint64_t>) {
  return enqueue({"launch_grid", stream.name(), kernel.name}, stream, {});
}

Point NullBackend::suspend(Stream& stream, Ref<HostOperation> pending) {
  return enqueue({"suspend", stream.name()}, stream, {.pending = std::move(pending)});
}

}  // namespace anabranch::null
