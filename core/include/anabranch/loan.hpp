#pragma once

#include <unordered_set>

#include "anabranch/hazard.hpp"
#include "anabranch/memory.hpp"

namespace anabranch {

// Memory that others work with past us, on one stream, for some time. Of what they put in nobody is told; so while the
// loan is open, whoever looks for order with the memory finds it in use up to what the stream has got by then, and when
// it is closed that becomes an access like any other. Safe from any thread.
class Loan final : public RefCounted {
 public:
  static Ref<Loan> open(Ref<Stream> stream);
  // Ends the loan, at the first call. What was lent counts as accessed by an operation put into the stream now.
  void close(HazardMode mode, Site site);

  // Lends bytes for as long as each loan lasts that is open on the stream; costs a load where none is.
  static void lend(Stream& stream, Storage& storage, ByteRange bytes);
  // Notes what may have been done with the storage by now, by others than `except` if that is not null, and with its
  // neighbours.
  static void note(Storage& storage, const Stream* except);
  // The storage is about to be given back: the same, and nobody refers to it any more.
  static void take_back(Storage& storage) noexcept;

 private:
  explicit Loan(Ref<Stream> stream) : stream_(std::move(stream)) {}
  static void note(Stream& stream, Storage& storage, ByteRange bytes, HazardMode mode, Site site);
  static void note_lent(Storage& storage, const Stream* except);

  const Ref<Stream> stream_;
  std::unordered_set<Storage*> storages_;  // guarded by the list of open loans
};

}  // namespace anabranch
