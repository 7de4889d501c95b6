#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "anabranch/hazard/history.hpp"
#include "anabranch/lock.hpp"

namespace anabranch {

class ExternalUse;

// Bytes that another library uses without our knowledge while the use is open.
struct Lent {
  Ref<ExternalUse> use;
  ByteRange bytes;
};

// The accesses to a block: its history with the lock that guards it, and the bytes that are lent. Any thread may call
// any member but those for a block that ends.
class AccessLog {
 public:
  // Records that the operation at `point` of `stream` accesses these bytes. `when` lets later accesses test
  // happens-before; `exact`: even once the operation is completed. `unreported`: later accesses wait for it, but it is
  // never reported as a race.
  void note(Stream& stream, Point point, Access access, const Footprint& where, const Moment* when = nullptr,
            Site site = {}, bool exact = false, bool unreported = false);
  // The same, and fast if only that stream has used the memory, above all if this repeats its last access.
  void note(const Touch& touch, const Noted& operation) {
    lock_.lock();
    if (only(operation.stream) && history_.repeat(touch, operation)) return lock_.unlock();
    note_anew(touch, operation);
  }
  // For memory to which nobody else has a reference yet: its accesses so far, or its arrival on a stream at a point.
  void begin_with(std::vector<Use> uses);
  void note_arrival(Stream& stream, Point point, Moment when, const Footprint& where);
  // Records an access by a host task, at a moment of its lane. `call`: the host function that makes it, if one does.
  void note_host(Moment when, Access access, const Footprint& where, Site site, const Moment& call = {});
  // The same for one that lasts, at a moment of its own lane. Replaces no other, because `end_host` may drop it.
  void begin_host(Moment when, Access access, const Footprint& where, Site site, const Moment& call = {});
  // The access of that lane has ended. `kept`: later accesses still test the order after it.
  void end_host(const Ref<LaneNumber>& lane, bool kept);
  // Drops the stream's accesses, which are completed.
  void forget(const Stream& stream);
  // Drops accesses that are completed if there are more than a few.
  void trim();
  // Takes over the accesses of a neighbour that ends. Returns the pruned ones.
  [[nodiscard]] std::vector<Use> take_over(std::vector<Use> uses);

  // The accesses of all streams that an access of this kind must come after, pending or completed.
  std::vector<Use> uses(Access access, const Footprint& where) const;
  // The same, without those that `stream` (null: the host) comes after according to `before`.
  std::vector<Use> conflicts(const Past& before, const Stream* stream, Access access, const Footprint& where) const;
  // Whether only that stream has used the memory, or nobody. One load, cheaper than `conflicts`.
  bool only(const Stream& stream) const noexcept {
    const void* const who = sole_.load(std::memory_order_acquire);
    return who == nullptr || who == &stream;
  }
  // Whether several may have used it, including borrowers and neighbours.
  bool several() const noexcept { return sole_.load(std::memory_order_acquire) == this; }

  // For external uses, under which lent bytes count as used. `lend` adds to a use, `lent` lists the open ones, and
  // `end_external_use` ends one and returns its bytes.
  void lend(const Ref<ExternalUse>& use, ByteRange bytes);
  std::vector<Lent> lent() const;
  std::vector<Lent> end_external_use(const ExternalUse& use);

  // Whether other blocks share bytes with this one, so that they may have been accessed through those.
  bool has_neighbours() const noexcept { return has_neighbours_; }
  void set_neighbours(bool some) noexcept;

  // -- for a block that ends, to which nobody else has a reference --

  bool is_lent() const noexcept { return !lent_.empty(); }
  // Drops what is completed or failed, and the host's accesses.
  void drop_completed();
  void drop_host();
  // Merges the accesses into one for each stream.
  void merge() { merge(false, false); }
  std::vector<Use>& all() noexcept { return history_.uses(); }
  void clear() noexcept;

 private:
  // Both require the lock and release it. `note_own` returns whether only that stream has used the memory; then it has
  // recorded the access.
  void note_anew(const Touch& touch, const Noted& operation);
  bool note_own(const Touch& touch, const Noted& operation);
  // These require the lock.
  void trim(std::vector<Use>& over, bool exact);
  void merge(bool into_reads_and_writes, bool exact);
  void note_sole() noexcept;

  mutable SpinLock lock_;
  History history_;
  std::size_t trim_next_ = 0;  // the length at which the history is merged again
  std::vector<Lent> lent_;
  std::atomic<bool> has_neighbours_{false};
  // The only stream that made accesses; null: none did; this object: several streams, the host, a borrower, or maybe a
  // neighbour.
  std::atomic<const void*> sole_{nullptr};
};

}  // namespace anabranch
