#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "anabranch/lock.hpp"
#include "anabranch/stream.hpp"

namespace anabranch {

enum class Access : std::uint8_t { read = 1, write = 2, read_write = 3 };

enum class MemoryKind : std::uint8_t {
  device,   // the backend's own, freed in stream order
  pinned,   // host memory that every device can reach
  foreign,  // somebody else's, kept alive and given back
};

// What a backend hands out.
struct Allocation {
  std::byte* pointer = nullptr;
  Point ready = 0;
};

// Where blocks of host memory come from: the system's heap, or pages that a driver has pinned. Any thread.
struct HostSource {
  static constexpr std::size_t alignment = 256;

  // Null if there is no more.
  void* (*allocate)(std::size_t bytes) noexcept = [](std::size_t bytes) noexcept {
    return std::aligned_alloc(alignment, bytes);
  };
  void (*release)(void* pointer) noexcept = [](void* pointer) noexcept { std::free(pointer); };
};

// Bytes [low, high) of a block.
struct ByteRange {
  std::size_t low = 0;
  std::size_t high = 0;
  bool overlaps(const ByteRange& other) const noexcept { return std::max(low, other.low) < std::min(high, other.high); }
  bool operator==(const ByteRange&) const = default;
};

// The newest use of some bytes by one stream.
struct Use {
  Ref<Stream> stream;
  Point wrote = 0;  // the newest write; 0: none
  Point used = 0;   // the newest access of any kind
  ByteRange bytes = {};
};

// A block of memory that arrays share. Dropping the last reference gives it back in stream order: after every use of
// it, by whichever streams, without the caller waiting, on any thread.
class Storage final : public RefCounted {
 public:
  using Release = void (*)(void* owner) noexcept;

  // Allocates `bytes` (0 is allowed) for use on `stream` from now on; without one, for use anywhere at once, by the
  // host too. Throws Error(memory) with the numbers.
  static Ref<Storage> allocate(Backend& backend, Stream* stream, std::size_t bytes, MemoryKind kind);
  // Wraps memory of `owner`; `release(owner)` is called once, on any thread, after the last use.
  static Ref<Storage> adopt(Backend& backend, void* pointer, std::size_t bytes, bool read_only, void* owner,
                            Release release);

  Backend& backend() const noexcept { return *backend_; }
  std::byte* pointer() const noexcept { return pointer_; }
  std::size_t bytes() const noexcept { return bytes_; }
  MemoryKind kind() const noexcept { return kind_; }
  bool read_only() const noexcept { return read_only_; }

  // The operation at `point` of `stream` accesses these bytes.
  void note(Stream& stream, Point point, Access access, ByteRange bytes);
  // What an access of that kind has to come after: for a read every stream's newest write to those bytes, for a write
  // also the reads. `used` of each is the point to wait for.
  std::vector<Use> uses(Access access, ByteRange bytes) const;

 private:
  class Spares;
  static Spares& spares() noexcept;

  Storage() = default;
  static Ref<Storage> make(Backend& backend, MemoryKind kind, std::byte* pointer, std::size_t bytes);
  void dispose() noexcept override;
  void give_back() noexcept;

  Backend* backend_ = nullptr;
  std::byte* pointer_ = nullptr;
  std::size_t bytes_ = 0;
  MemoryKind kind_ = MemoryKind::device;
  bool read_only_ = false;
  void* owner_ = nullptr;
  Release release_ = nullptr;
  void forget_finished(std::vector<Use>& finished);
  void merge_ranges();

  mutable SpinLock lock_;
  std::vector<Use> uses_;
};

// Calls `done(context)` once every use is complete or failed: at once if it is already, else on the thread that
// completes the last. Uses nothing of the caller's after it returns.
void after(std::vector<Use> uses, void (*done)(void* context) noexcept, void* context);

}  // namespace anabranch
