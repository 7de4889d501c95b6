#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "anabranch/history.hpp"
#include "anabranch/lock.hpp"
#include "anabranch/stream.hpp"

namespace anabranch {

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

class Loan;

// Bytes that others work with past us, for as long as the loan is open.
struct Lent {
  Ref<Loan> loan;
  ByteRange bytes;
};

// A block of memory that arrays share. Dropping the last reference gives it back in stream order: after every use of
// it, by whichever streams, without the caller waiting, on any thread.
class Storage final : public RefCounted {
 public:
  using Release = void (*)(void* owner) noexcept;

  // Allocates `bytes` (0 is allowed) for use on `stream` from now on; without one, for use anywhere at once, by the
  // host too. Throws Error(memory) with the numbers.
  static Ref<Storage> allocate(Backend& backend, Stream* stream, std::size_t bytes, MemoryKind kind);
  // Wraps memory of `owner`; `release(owner)` is called once, on any thread, after the last use. Memory that others
  // know of already is the same storage, whichever device's, and its second owner released at once. Of memory that
  // shares bytes with that, and of memory that is gone but still in use, accesses come before those to this one.
  static Ref<Storage> adopt(Backend& backend, void* pointer, std::size_t bytes, bool read_only, void* owner,
                            Release release);

  // Wraps memory that an allocator of the layer above made for `stream`; `release(owner)` is called once, on any
  // thread, when what that stream is given from then on may use the memory: every other stream's use is over, and its
  // own has been handed on, or is over too where the memory is the host's.
  static Ref<Storage> entrust(Stream& stream, void* pointer, std::size_t bytes, void* owner, Release release);

  // Others know of the memory from now on: what they hand in is found to be it.
  void share();

  // Another name for the same memory, which lives as long: accesses through it are known to be that. For captures.
  static Ref<Storage> alias(Ref<Storage> of);

  // What it is another name for, or null.
  const Ref<Storage>& original() const noexcept { return original_; }
  Backend& backend() const noexcept { return *backend_; }
  std::byte* pointer() const noexcept { return pointer_; }
  std::size_t bytes() const noexcept { return bytes_; }
  MemoryKind kind() const noexcept { return kind_; }
  // Whether nobody who handed it in said that it may be written.
  bool read_only() const noexcept { return read_only_.load(std::memory_order_relaxed); }

  // The others that share bytes with it.
  std::vector<Ref<Storage>> neighbours() const {
    return has_neighbours_ ? find_neighbours() : std::vector<Ref<Storage>>();
  }
  // Whether they have all of those bytes, so that these stay with their owner when this one goes.
  bool kept_by_neighbours(ByteRange bytes) const;

  // The operation at `point` of `stream` accesses these bytes. With its moment, who comes after it can be found out;
  // `exact`: also once it is through. `untold`: nobody is told of it, but waits for it.
  void note(Stream& stream, Point point, Access access, const Footprint& where, const Moment* when = nullptr,
            Site site = {}, bool exact = false, bool untold = false);
  // The same; costs little where nobody but that stream has made an access, above all where this was its last.
  void note(const Touch& touch, const Noted& operation) {
    lock_.lock();
    if (only(operation.stream) && history_.repeat(touch, operation)) return lock_.unlock();
    note_anew(touch, operation);
  }
  // A host task did, at a moment of its lane.
  void note_host(Moment when, Access access, const Footprint& where, Site site);
  // What the stream did here is over, and need not be remembered.
  void forget(const Stream& stream);
  // What an access of that kind has to come after, of all streams, known to be through or not.
  std::vector<Use> uses(Access access, const Footprint& where) const;
  // The same but for what `stream`, or the host if it is null, comes after: that is known to be in `before`.
  std::vector<Use> conflicts(const Past& before, const Stream* stream, Access access, const Footprint& where) const;
  // Whether nobody but that stream has made an access. Costs less than to ask for conflicts.
  bool only(const Stream& stream) const noexcept {
    const void* const who = sole_.load(std::memory_order_acquire);
    return who == nullptr || who == &stream;
  }

  // Whether more than one may have, among them those whom it is lent to, and neighbours.
  bool several() const noexcept { return sole_.load(std::memory_order_acquire) == this; }

  // For loans, which see to it that what is lent counts as used. The bytes are lent from now on; those that are; those
  // that were, up to now.
  void lend(const Ref<Loan>& loan, ByteRange bytes);
  std::vector<Lent> lent() const;
  std::vector<Lent> end_loan(const Loan& loan);

  // Where it was made, if that is known.
  Site site = {};
  // Whether it is an array's, so that traces tell of its end.
  bool listed = false;

 private:
  friend class Capture;
  friend class KnownMemory;
  class Spares;
  static Spares& spares() noexcept;

  Storage() = default;
  static Ref<Storage> make(Backend& backend, MemoryKind kind, std::byte* pointer, std::size_t bytes);
  void dispose() noexcept override;
  void trace_end() noexcept;
  void give_back(void* gone) noexcept;

  Backend* backend_ = nullptr;
  std::byte* pointer_ = nullptr;
  std::size_t bytes_ = 0;
  MemoryKind kind_ = MemoryKind::device;
  std::atomic<bool> read_only_{false};
  std::atomic<bool> known_{false};  // to others
  void* owner_ = nullptr;
  Release release_ = nullptr;
  Ref<Stream> home_;  // in whose order it is released; null: when all uses are over
  Ref<Storage> original_;
  // Either begins with the lock and gives it back. Whether nobody else has made an access, and it is noted.
  void note_anew(const Touch& touch, const Noted& operation);
  bool note_own(const Touch& touch, const Noted& operation);
  void trim(std::vector<Use>& over, bool exact);
  void trim();
  void merge(bool into_reads_and_writes, bool exact);
  void note_sole() noexcept;
  // Whether there are blocks that share bytes with this one.
  void set_neighbours(bool some) noexcept;
  std::vector<Ref<Storage>> find_neighbours() const;
  // What was done to such a block before it went. Returns what need not be remembered.
  [[nodiscard]] std::vector<Use> take_over(std::vector<Use> uses);

  mutable SpinLock lock_;
  History history_;
  std::size_t trim_next_ = 0;  // how long the history is to become before it is merged again
  std::vector<Lent> lent_;
  std::atomic<bool> has_neighbours_{false};
  // Who made all accesses; null: nobody; this object: several, the host, somebody whom some of it is lent to, or maybe
  // a neighbour.
  std::atomic<const void*> sole_{nullptr};
};

// Calls `done(context)` once every use is complete or failed: at once if it is already, else on the thread that
// completes the last. Uses nothing of the caller's after it returns.
void after(std::vector<Use> uses, void (*done)(void* context) noexcept, void* context);

}  // namespace anabranch
