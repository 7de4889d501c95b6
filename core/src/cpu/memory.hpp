#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "anabranch/memory/memory.hpp"

namespace anabranch::cpu {

// The memory of one CPU device, cached by size class. A freed block that only one stream used is available to that
// stream at once, because its later work does not run before its earlier work is completed; to others once that work is
// completed. The blocks of a size number at most about twice those in use at one time by arrays and such work.
//
// Sizes are rounded up to a quarter of a power of two, so at most a fifth of a block is unused.
class MemoryPool {
 public:
  MemoryPool(std::string device, std::size_t limit, HostSource source = {})
      : device_(std::move(device)), limit_(limit), source_(source) {}

  // Throws Error(memory) if the request would exceed `limit` or the system's memory is exhausted.
  Allocation allocate(const Stream* stream, std::size_t bytes);
  void free(std::byte* pointer, std::size_t bytes, std::vector<Use> uses) noexcept;
  // Makes blocks whose uses are over free for everyone, so that they refer to no stream.
  void reclaim();
  std::size_t available();
  // The number of bytes that are not available.
  std::size_t used() { return limit_ - available(); }

 private:
  struct Block {
    std::byte* pointer;
    Ref<Stream> stream;  // null: free for everyone
    Point point;
  };
  // Freed blocks of one size, newest last.
  struct Blocks {
    std::vector<Block> used;  // by a stream's work
    std::vector<std::byte*> free;
    std::size_t reclaim_at = 0;  // the number of used blocks at which all are examined
  };
  struct Late;
  struct Reclaimed;

  std::size_t rounded(std::size_t bytes) const noexcept;
  void reclaim(Blocks& blocks, std::size_t size, Reclaimed& reclaimed) noexcept;
  void reclaim(Reclaimed& reclaimed) noexcept;
  void trim(std::size_t keep) noexcept;
  void trim_excess() noexcept;
  void put(Block block, std::size_t size) noexcept;
  void put_after(std::vector<Use> uses, std::byte* pointer, std::size_t size) noexcept;

  const std::string device_;  // for messages
  const std::size_t limit_;
  const HostSource source_;
  std::mutex mutex_;
  std::map<std::size_t, Blocks> blocks_;
  std::size_t used_ = 0;        // bytes in blocks that are handed out or not yet free for everyone
  std::size_t cached_ = 0;      // bytes in blocks that are free for everyone
  std::size_t pending_ = 0;     // bytes in freed blocks that are not known to be free for everyone
  std::size_t examine_at_ = 0;  // the number of them at which those of every size are examined
};

}  // namespace anabranch::cpu
