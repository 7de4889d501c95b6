#pragma once

#include <cuda.h>

#include <cstddef>
#include <mutex>

#include "anabranch/lock.hpp"

namespace anabranch::cuda {

// A block of device memory; with pointer 0, none.
struct Block {
  CUdeviceptr pointer = 0;
  std::size_t bytes = 0;
};

// What was freed last in a stream, for the stream's next allocations of the same sizes: what it does from then on comes
// after all that it did with the memory, so the driver need not be asked. Nobody else can have it meanwhile; so these
// are few and small. Any thread.
class KeptBlocks {
 public:
  static constexpr std::size_t most = 4;
  static constexpr std::size_t most_bytes = 64 << 10;  // of each

  // The one of exactly that size that was freed last.
  Block take(std::size_t bytes) noexcept {
    if (bytes > most_bytes) return {};
    std::lock_guard guard(lock_);
    for (std::size_t i = count_; i-- > 0;) {
      if (blocks_[i].bytes == bytes) return remove(i);
    }
    return {};
  }
  // What is to be freed in its place: the oldest one, if there are too many, or the block itself, if it is too large.
  Block put(Block block) noexcept {
    if (block.bytes > most_bytes) return block;
    std::lock_guard guard(lock_);
    const Block oldest = count_ == most ? remove(0) : Block{};
    blocks_[count_++] = block;
    return oldest;
  }
  // Any of them.
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
  // With the lock; the others keep their order.
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
