#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "anabranch/memory/access_log.hpp"
#include "anabranch/stream/stream.hpp"

namespace anabranch {

enum class MemoryKind : std::uint8_t {
  device,   // owned by the backend, freed in stream order
  pinned,   // host memory that every device can reach
  foreign,  // owned by another library, kept alive and released
};

// A block from a backend. Other streams may use it once `ready` is completed.
struct Allocation {
  std::byte* pointer = nullptr;
  Point ready = 0;
};

// Memory of the system's heap, aligned as `HostSource` says; large blocks are made of huge pages where the system has
// them. Returns null if memory is exhausted.
void* allocate_pages(std::size_t bytes) noexcept;
// Releases what `allocate_pages` has returned for so many bytes.
void release_pages(void* pointer, std::size_t bytes) noexcept;

// The source of host memory: the system's heap, or pages that a driver has pinned. Any thread may call it.
struct HostSource {
  static constexpr std::size_t alignment = 256;

  // Returns null if memory is exhausted.
  void* (*allocate)(std::size_t bytes) noexcept = &allocate_pages;
  // `bytes` are those of the allocation.
  void (*release)(void* pointer, std::size_t bytes) noexcept = &release_pages;
};

// A block of memory that arrays share. Dropping the last reference, on any thread, releases the memory in stream order,
// after its last use in every stream. It does not block.
class Storage final : public RefCounted {
 public:
  using Release = void (*)(void* owner) noexcept;

  // Allocates `bytes` (0 is allowed) for later work on `stream`; without a stream, for immediate use anywhere,
  // including the host. Throws Error(memory), which states the sizes.
  static Ref<Storage> allocate(Backend& backend, Stream* stream, std::size_t bytes, MemoryKind kind);
  // Wraps memory of `owner`. `release(owner)` is called once, on any thread, after the last use. Memory that lies in a
  // known block returns that block's storage, on any device, and the second owner is released at once. Accesses to
  // known memory that shares bytes with this, or that has ended with uses pending, come before accesses to this
  // storage.
  static Ref<Storage> adopt(Backend& backend, void* pointer, std::size_t bytes, bool read_only, void* owner,
                            Release release);

  // Wraps memory that an allocator of the layer above made for `stream`. `release(owner)` is called once, on any
  // thread, when later work of that stream may reuse the memory: the uses of all other streams are completed, and the
  // driver has the stream's own uses, or they are completed too in the case of host memory.
  static Ref<Storage> entrust(Stream& stream, void* pointer, std::size_t bytes, void* owner, Release release);

  // Lists the memory by address, because its address is shown; memory imported later is then recognised.
  void share();

  // An alias for the same memory, which keeps it alive. For captures of graphed calls.
  static Ref<Storage> alias(Ref<Storage> of);

  // The storage that this is an alias of, or null.
  const Ref<Storage>& original() const noexcept { return original_; }
  Backend& backend() const noexcept { return *backend_; }
  std::byte* pointer() const noexcept { return pointer_; }
  std::size_t bytes() const noexcept { return bytes_; }
  MemoryKind kind() const noexcept { return kind_; }
  // Whether every import of the memory was read-only.
  bool read_only() const noexcept { return read_only_.load(std::memory_order_relaxed); }

  // The other storages that share bytes with this one.
  std::vector<Ref<Storage>> neighbours() const {
    return accesses_.has_neighbours() ? find_neighbours() : std::vector<Ref<Storage>>();
  }
  // Whether neighbours contain all of these bytes, so that they stay valid when this storage ends.
  bool kept_by_neighbours(ByteRange bytes) const;

  // Its accesses. Those that were made through neighbours are in theirs.
  AccessLog& accesses() noexcept { return accesses_; }
  const AccessLog& accesses() const noexcept { return accesses_; }
  // `AccessLog::uses` and `AccessLog::conflicts`, with what was accessed through neighbours.
  std::vector<Use> uses(Access access, const Footprint& where) const;
  std::vector<Use> conflicts(const Past& before, const Stream* stream, Access access, const Footprint& where) const;

  // The site of the allocation, if known.
  Site site = {};
  // Its number while schedules are explored, of the run in the upper half; see `explore::Controller`.
  std::uint64_t explored = 0;
  // Whether an array owns it, so that traces show its end.
  bool listed = false;

 private:
  friend class Capture;
  friend class KnownMemory;
  class Spares;
  static Spares& spares() noexcept;

  Storage() = default;
  static Ref<Storage> make(Backend& backend, MemoryKind kind, std::byte* pointer, std::size_t bytes);
  void dispose() noexcept override;
  std::vector<Ref<Storage>> find_neighbours() const;
  void trace_end() noexcept;
  void give_back(void* gone) noexcept;
  void recycle() noexcept;

  Backend* backend_ = nullptr;
  std::byte* pointer_ = nullptr;
  std::size_t bytes_ = 0;
  MemoryKind kind_ = MemoryKind::device;
  std::atomic<bool> read_only_{false};
  std::atomic<bool> known_{false};  // listed by address
  void* owner_ = nullptr;
  Release release_ = nullptr;
  Ref<Stream> home_;  // released in its order; null: when all uses are completed
  Ref<Storage> original_;
  AccessLog accesses_;
};

enum class WorkState { pending, completed, failed };
// How far the work of a stream up to a point is.
WorkState work_state(Stream& stream, Point point) noexcept;
// The pending work of other streams that a failed use may have come after, as the newest operation of each. A failed
// stream does not wait for that work, and a history that pruned it knows of it by the use alone. Empty if the use has
// not failed. Runs on any thread, with no lock held: it lists the streams of every device.
std::vector<Use> pending_before(const Use& use);
// The uses without those that are completed, and with what is pending before them in place of those that have failed.
std::vector<Use> still_pending(std::vector<Use> uses);
// Calls `done(context)` once, when every use is completed, or has failed with nothing pending before it: at once if all
// are, else on the thread that completes the last one. Keeps no reference to the caller's data after it returns. Runs
// on any thread, with no lock held.
void after(std::vector<Use> uses, void (*done)(void* context) noexcept, void* context);

}  // namespace anabranch
