#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "anabranch/memory.hpp"

namespace anabranch {

// Memory that other libraries know of, by address, so that what they hand in is found to be what it is, or to share
// bytes with what is here already. Blocks that share bytes are neighbours: who accesses one comes after the accesses to
// the others. Safe for use from any thread.
class KnownMemory {
 public:
  // What is under way in memory that nobody has here any more.
  struct Gone {
    Backend* backend;
    std::byte* pointer;
    std::size_t bytes;
    std::vector<Use> uses;
  };

  static KnownMemory& instance();

  // The block that has all of these bytes, or null.
  Ref<Storage> find(Backend& backend, const std::byte* pointer, std::size_t bytes);
  // Lists a block. What is under way in memory that is gone, and was the same, it takes over.
  void add(Storage& storage);
  // Takes a block off the list that has no reference left. Its uses go to its neighbours, and what is under way to
  // whoever comes until it is forgotten; null if nothing is.
  Gone* remove(Storage& storage, const std::vector<Use>& uses, std::vector<Use> under_way);
  void forget(Gone* gone);
  // The others that have bytes of a block.
  std::vector<Ref<Storage>> neighbours(const Storage& storage);

 private:
  // Bytes without a gap, and who has some of them.
  struct Extent {
    const std::byte* end = nullptr;
    std::vector<Storage*> blocks;
    std::vector<std::unique_ptr<Gone>> gone;
  };
  using Extents = std::map<std::pair<const void*, const std::byte*>, Extent>;

  // The same as `remove`, but for what the neighbours, which are found in `others`, may forget for it.
  Gone* leave(Storage& storage, const std::vector<Use>& uses, std::vector<Use> under_way,
              std::vector<Ref<Storage>>& others);
  Extents::iterator first_after(Backend& backend, const std::byte* pointer);
  Extent& claim(Backend& backend, const std::byte* pointer, std::size_t bytes);
  std::vector<Ref<Storage>> sharing(const Extent& extent, const Storage& storage);
  void drop_if_empty(Extents::iterator place);

  std::mutex mutex_;  // comes before the lock of a storage
  Extents extents_;
};

}  // namespace anabranch
