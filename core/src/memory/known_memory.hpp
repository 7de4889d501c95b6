#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "anabranch/memory/memory.hpp"

namespace anabranch {

// The memory that other libraries know, by address, so that imports of it are recognised, as a known block or as
// sharing bytes with one. Blocks that share bytes are neighbours: an access to one comes after earlier accesses to the
// others. Any thread may call any member.
class KnownMemory {
 public:
  // Pending uses of memory that no storage here refers to any more.
  struct Gone {
    Backend* backend;
    std::byte* pointer;
    std::size_t bytes;
    std::vector<Use> uses;
  };

  static KnownMemory& instance();

  // The block that contains all of these bytes, or null.
  Ref<Storage> find(Backend& backend, const std::byte* pointer, std::size_t bytes);
  // Lists a block, which takes over pending uses of ended memory that shares its bytes.
  void add(Storage& storage);
  // Removes a block whose last reference was dropped. Its neighbours take over `uses`. Blocks that are listed later
  // take over `under_way`, until that is forgotten. Returns null if nothing is pending.
  Gone* remove(Storage& storage, const std::vector<Use>& uses, std::vector<Use> under_way);
  void forget(Gone* gone);
  // The other blocks that share bytes with this one.
  std::vector<Ref<Storage>> neighbours(const Storage& storage);

 private:
  // Contiguous bytes, and the blocks that contain some of them.
  struct Extent {
    const std::byte* end = nullptr;
    std::vector<Storage*> blocks;
    std::vector<std::unique_ptr<Gone>> gone;
  };
  using Extents = std::map<std::pair<const void*, const std::byte*>, Extent>;

  // `remove`, except for pruning in the neighbours, which it returns in `others`.
  Gone* leave(Storage& storage, const std::vector<Use>& uses, std::vector<Use> under_way,
              std::vector<Ref<Storage>>& others);
  Extents::iterator first_after(Backend& backend, const std::byte* pointer);
  Extent& claim(Backend& backend, const std::byte* pointer, std::size_t bytes);
  std::vector<Ref<Storage>> sharing(const Extent& extent, const Storage& storage);
  void drop_if_empty(Extents::iterator place);

  std::mutex mutex_;  // acquired before the lock of a storage
  Extents extents_;
};

}  // namespace anabranch
