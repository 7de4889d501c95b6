#pragma once

#include <cuda.h>

#include <cstddef>
#include <mutex>

#include "anabranch/lock.hpp"

namespace anabranch::cuda {

// A block of device memory; pointer 0: none.
struct Block {
  CUdeviceptr pointer = 0;
  std::size_t bytes = 0;
};

// The blocks freed last in a stream, kept for its next allocations of the same sizes. Stream order makes their reuse
// safe without a driver call. Nobody else can use them meanwhile, so they are few and small. Any thread may call any
// member.
class KeptBlocks {
 public:
  static constexpr std::size_t most = 4;
  static constexpr std::size_t most_bytes = 64 << 10;  // of each

  // Takes the block of exactly that size that was freed last.
  Block take(std::size_t bytes) noexcept {
    if (bytes > most_bytes) return {};
    std::lock_guard guard(lock_);
    for (std::size_t i = count_; i-- > 0;) {
      if (blocks_[i].bytes == bytes) return remove(i);
    }
    return {};
  }
  // Keeps the block. Returns a block to free instead: the oldest one if there are too many, or this one if it is too
  // large.
  Block put(Block block) noexcept {
    if (block.bytes > most_bytes) return block;
    std::lock_guard guard(lock_);
    const Block oldest = count_ == most ? remove(0) : Block{};
    blocks_[count_++] = block;
    return oldest;
  }
  // Takes any block.
  Block take_any() noexcept {
    std::lock_guard guard(lock_);
    return count_ == 0 ? Block{} : remove(count_ - 1);
  }
  std::size_t bytes() const noexcept {
    std::lock_guard guard(lock_);
    std::size_t sum = 0;
    for (std::size_t i = 0; i < count_; ++i) sum += blocks_[i].bytes;
    return sum;
  }

 private:
  // Requires the lock. The others keep their order.
  Block remove(std::size_t index) noexcept {
    const Block removed = blocks_[index];
    --count_;
    for (; index < count_; ++index) blocks_[index] = blocks_[index + 1];
    return removed;
  }

  mutable SpinLock lock_;
  std::size_t count_ = 0;
  Block blocks_[most];
};

}  // namespace anabranch::cuda
