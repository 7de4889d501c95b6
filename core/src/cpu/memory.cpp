#include "memory.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>
#include <string>

#include "anabranch/backend.hpp"

namespace anabranch::cpu {
namespace {

constexpr std::size_t alignment = HostSource::alignment;
// Cached memory over this goes back to the system.
constexpr std::size_t release_threshold = std::size_t{1} << 30;
// How many blocks of a size are looked at before a new one is made.
constexpr std::size_t search_depth = 8;

bool is_over(const Ref<Stream>& stream, Point point) noexcept {
  try {
    return stream->backend().query(*stream, point);
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

struct MemoryPool::Late {
  MemoryPool* pool;
  std::byte* pointer;
  std::size_t size;
};

std::size_t MemoryPool::rounded(std::size_t bytes) const noexcept {
  const auto up = [bytes](std::size_t step) { return (bytes + step - 1) / step * step; };
  if (bytes <= 4 * alignment) return up(alignment);
  const std::size_t size = up(std::bit_floor(bytes - 1) / 4);
  return size <= limit_ ? size : up(alignment);  // what fits must not fail for being rounded
}

Allocation MemoryPool::allocate(const Stream* stream, std::size_t bytes) {
  if (bytes > limit_) {
    throw Error(ErrorKind::memory,
                "cannot allocate " + std::to_string(bytes) + " bytes: " + device_ + " has " + std::to_string(limit_));
  }
  const std::size_t size = rounded(bytes);
  Ref<Stream> over;  // let go outside the lock
  std::lock_guard lock(mutex_);
  auto& blocks = blocks_[size];
  const std::size_t depth = std::min(blocks.size(), search_depth);
  for (std::size_t i = 0; i < depth; ++i) {
    // The newest is the likeliest to be in a cache, and the likeliest to be this stream's own.
    Block& block = blocks[blocks.size() - 1 - i];
    const bool shared = !block.stream;
    const bool over_now = shared || is_over(block.stream, block.point);
    if (!over_now && block.stream.get() != stream) continue;
    const Allocation allocation{block.pointer, over_now ? 0 : block.point};
    over = std::move(block.stream);
    block = std::move(blocks.back());
    blocks.pop_back();
    if (shared) {
      cached_ -= size;
      used_ += size;
    }
    return allocation;
  }
  if (used_ + cached_ + size > limit_) {
    settle();
    trim(0);
  }
  void* pointer = nullptr;
  if (used_ + size <= limit_) {
    pointer = source_.allocate(size);
    if (!pointer) {
      trim(0);
      pointer = source_.allocate(size);
    }
  }
  if (!pointer) {
    throw Error(ErrorKind::memory, "cannot allocate " + std::to_string(bytes) +
                                       " bytes: " + std::to_string(limit_ - used_) + " of the " +
                                       std::to_string(limit_) + " bytes of " + device_ + " are free");
  }
  used_ += size;
  return {static_cast<std::byte*>(pointer), 0};
}

void MemoryPool::free(std::byte* pointer, std::size_t bytes, std::vector<Use> uses) noexcept {
  std::erase_if(uses, [](const Use& use) { return is_over(use.stream, use.point); });
  const std::size_t size = rounded(bytes);
  if (uses.size() > 1) {
    after(
        std::move(uses),
        [](void* context) noexcept {
          const std::unique_ptr<Late> late(static_cast<Late*>(context));
          late->pool->put({late->pointer, nullptr, 0}, late->size);
        },
        new Late{this, pointer, size});
  } else if (uses.size() == 1) {
    put({pointer, std::move(uses[0].stream), uses[0].point}, size);
  } else {
    put({pointer, nullptr, 0}, size);
  }
}

void MemoryPool::put(Block block, std::size_t size) noexcept {
  std::lock_guard lock(mutex_);
  if (!block.stream) {
    used_ -= size;
    cached_ += size;
  }
  blocks_[size].push_back(std::move(block));
  if (cached_ > release_threshold) trim(release_threshold / 2);
}

// Marks the blocks that are over as free for everyone.
void MemoryPool::settle() noexcept {
  for (auto& [size, blocks] : blocks_) {
    for (Block& block : blocks) {
      if (!block.stream || !is_over(block.stream, block.point)) continue;
      block.stream.reset();
      used_ -= size;
      cached_ += size;
    }
  }
}

void MemoryPool::trim(std::size_t keep) noexcept {
  for (auto entry = blocks_.rbegin(); entry != blocks_.rend() && cached_ > keep; ++entry) {
    auto& [size, blocks] = *entry;
    std::erase_if(blocks, [&, size = size](const Block& block) {
      if (block.stream || cached_ <= keep) return false;
      source_.release(block.pointer);
      cached_ -= size;
      return true;
    });
  }
}

std::size_t MemoryPool::available() {
  std::lock_guard lock(mutex_);
  settle();
  return limit_ - used_;
}

}  // namespace anabranch::cpu
