// GPUs for the tests of this folder, which are skipped where there is none.
#pragma once

#include <cstring>
#include <vector>

#include "check.hpp"
#include "cuda/backend.hpp"
#include "gate.hpp"

namespace anabranch::cuda {

inline CudaBackend& device() {
  const Installation& found = installation();
  if (found.devices == 0) check::skip(found.missing);
  static auto* const device = new CudaBackend(0, 0);
  return *device;
}

// Another one.
inline CudaBackend& second_device() {
  const Installation& found = installation();
  if (found.devices < 2) check::skip("there are no two GPUs");
  static auto* const device = new CudaBackend(1, 1);
  return *device;
}

// Contiguous bytes at a pointer.
inline Elements bytes(const void* pointer, std::size_t count) {
  const std::int64_t shape[] = {static_cast<std::int64_t>(count)};
  return {const_cast<std::byte*>(static_cast<const std::byte*>(pointer)), row_major(1, shape, 1)};
}

// Copies all bytes of one block to another, of whichever devices.
inline Point copy(Stream& stream, Storage& dst, Storage& src, std::size_t size) {
  Elements target = bytes(dst.pointer(), size);
  Elements source = bytes(src.pointer(), size);
  target.home = &dst.backend();
  source.home = &src.backend();
  const Point point = stream.backend().copy(stream, target, source, static_cast<std::int64_t>(size));
  dst.accesses().note(stream, point, Access::write, {0, size});
  src.accesses().note(stream, point, Access::read, {0, size});
  return point;
}

// Memory of the device and as much that is pinned.
class Pair {
 public:
  Pair(CudaBackend& device, Stream& stream, std::size_t size)
      : memory(Storage::allocate(device, &stream, size, MemoryKind::device)),
        host(Storage::allocate(device, nullptr, size, MemoryKind::pinned)),
        size(size) {}

  Point upload(Stream& stream) { return copy(stream, *memory, *host, size); }
  Point download(Stream& stream) { return copy(stream, *host, *memory, size); }

  Ref<Storage> memory;
  Ref<Storage> host;
  const std::size_t size;
};

}  // namespace anabranch::cuda
