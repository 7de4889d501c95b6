#pragma once

#include <unordered_set>

#include "anabranch/hazard/hazard.hpp"
#include "anabranch/memory/memory.hpp"

namespace anabranch {

// Memory that another library uses on one stream without our knowledge. While the use is open, the memory counts as in
// use up to the stream's newest point at each check. Closing the use records an ordinary access. Any thread may call
// any member.
class ExternalUse final : public RefCounted {
 public:
  static Ref<ExternalUse> open(Ref<Stream> stream);
  // Ends the use; only the first call has an effect. Lent memory counts as accessed by an operation enqueued in the
  // stream now.
  void close(HazardMode mode, Site site);

  // Lends bytes to every use that is open on the stream. Costs one load if none is.
  static void lend(Stream& stream, Storage& storage, ByteRange bytes);
  // Records the accesses that borrowers of the storage and of its neighbours may have made so far. Leaves out uses on
  // `except`, which may be null.
  static void note(Storage& storage, const Stream* except);
  // The same, before the storage releases its memory; afterwards no use refers to it.
  static void take_back(Storage& storage) noexcept;

 private:
  explicit ExternalUse(Ref<Stream> stream) : stream_(std::move(stream)) {}
  static void note(Stream& stream, Storage& storage, ByteRange bytes, HazardMode mode, Site site);
  static void note_lent(Storage& storage, const Stream* except);

  const Ref<Stream> stream_;
  std::unordered_set<Storage*> storages_;  // guarded by the list of open external uses
};

}  // namespace anabranch
