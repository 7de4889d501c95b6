#pragma once

#include <unordered_set>

#include "anabranch/hazard.hpp"
#include "anabranch/memory.hpp"

namespace anabranch {

// Memory that another library uses on one stream without our knowledge. While the loan is open, the memory counts as in
// use up to the stream's newest point at each check. Closing the loan records an ordinary access. Any thread may call
// any member.
class Loan final : public RefCounted {
 public:
  static Ref<Loan> open(Ref<Stream> stream);
  // Ends the loan; only the first call has an effect. Lent memory counts as accessed by an operation enqueued in the
  // stream now.
  void close(HazardMode mode, Site site);

  // Lends bytes to every loan that is open on the stream. Costs one load if none is.
  static void lend(Stream& stream, Storage& storage, ByteRange bytes);
  // Records the accesses that borrowers of the storage and of its neighbours may have made so far. Leaves out loans on
  // `except`, which may be null.
  static void note(Storage& storage, const Stream* except);
  // The same, before the storage releases its memory; afterwards no loan refers to it.
  static void take_back(Storage& storage) noexcept;

 private:
  explicit Loan(Ref<Stream> stream) : stream_(std::move(stream)) {}
  static void note(Stream& stream, Storage& storage, ByteRange bytes, HazardMode mode, Site site);
  static void note_lent(Storage& storage, const Stream* except);

  const Ref<Stream> stream_;
  std::unordered_set<Storage*> storages_;  // guarded by the list of open loans
};

}  // namespace anabranch
