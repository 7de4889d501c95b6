#include "memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "backend.hpp"
#include "explore/controller.hpp"

namespace anabranch {

namespace {

constexpr std::size_t page = std::size_t{4} << 10;
constexpr std::size_t huge_page = std::size_t{2} << 20;

// From here on a block begins somewhere in its first page.
constexpr std::size_t shifted_from = std::size_t{64} << 10;

// Processors order a load after stores by the low 12 bits of their addresses, and the system's memcpy is slower from
// the beginning of one page to the beginning of another (docs/internals/measurements.md). So no block begins with its
// page, and blocks that follow one another begin at different places.
std::size_t next_shift() noexcept {
  static std::atomic<std::size_t> blocks = 0;
  constexpr std::size_t places = page / HostSource::alignment - 1;
  constexpr std::size_t step = 4;
  return (1 + blocks.fetch_add(1, std::memory_order_relaxed) * step % places) * HostSource::alignment;
}

}  // namespace

void* allocate_pages(std::size_t bytes) noexcept {
  void* pointer = nullptr;
  if (bytes < shifted_from) {
    return posix_memalign(&pointer, HostSource::alignment, bytes) == 0 ? pointer : nullptr;
  }
  const bool large = bytes >= 2 * huge_page;
  if (posix_memalign(&pointer, large ? huge_page : page, bytes + page) != 0) return nullptr;
  // One page fault instead of 512, and one entry of the processor's page tables. NumPy asks for the same from 4 MiB on.
  if (large) madvise(pointer, bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(pointer) + next_shift();
}

void release_pages(void* pointer, std::size_t bytes) noexcept {
  const std::size_t shift = bytes < shifted_from ? 0 : reinterpret_cast<std::uintptr_t>(pointer) % page;
  std::free(static_cast<std::byte*>(pointer) - shift);
}

}  // namespace anabranch

namespace anabranch::cpu {
namespace {

constexpr std::size_t alignment = HostSource::alignment;
// Cached memory over this goes back to the system.
constexpr std::size_t release_threshold = std::size_t{1} << 30;
// What a run of an exploration finds in new memory.
constexpr int unwritten = 0xAB;
// The number of used blocks of a size to examine before allocating a new one.
constexpr std::size_t search_depth = 8;

}  // namespace

// What was found under the pool's lock, and is released without it.
struct MemoryPool::Reclaimed {
  struct Failed {
    Block block;
    std::size_t size;
  };

  explicit Reclaimed(MemoryPool& pool) : pool(pool) {}
  Reclaimed(const Reclaimed&) = delete;
  // The use of a failed stream says nothing of what came before it.
  ~Reclaimed() {
    for (Failed& each : failed) {
      std::vector<Use> uses;
      uses.push_back({std::move(each.block.stream), each.block.point});
      pool.put_after(std::move(uses), each.block.pointer, each.size);
    }
  }

  MemoryPool& pool;
  std::vector<Ref<Stream>> over;
  std::vector<Failed> failed;
};

struct MemoryPool::Late {
  MemoryPool* pool;
  std::byte* pointer;
  std::size_t size;
};

std::size_t MemoryPool::rounded(std::size_t bytes) const noexcept {
  const auto up = [bytes](std::size_t step) { return (bytes + step - 1) / step * step; };
  if (bytes <= 4 * alignment) return up(alignment);
  const std::size_t size = up(std::bit_floor(bytes - 1) / 4);
  return size <= limit_ ? size : up(alignment);  // a size that fits must not fail because of rounding
}

Allocation MemoryPool::allocate(const Stream* stream, std::size_t bytes) {
  if (bytes > limit_) {
    throw Error(ErrorKind::memory,
                "cannot allocate " + std::to_string(bytes) + " bytes: " + device_ + " has " + std::to_string(limit_));
  }
  const std::size_t size = rounded(bytes);
  std::optional<Reclaimed> reclaimed;
  const auto found = [&]() -> Reclaimed& { return reclaimed ? *reclaimed : reclaimed.emplace(*this); };
  Ref<Stream> over;  // released outside the lock, as that is
  std::lock_guard lock(mutex_);
  Blocks& blocks = blocks_[size];
  auto& [used, free, reclaim_at] = blocks;
  const std::size_t depth = std::min(used.size(), search_depth);
  for (std::size_t i = 0; i < depth; ++i) {
    // The newest block is the likeliest to be in a cache, and to be this stream's own.
    Block& block = used[used.size() - 1 - i];
    const WorkState state = work_state(*block.stream, block.point);
    if (state == WorkState::failed || (state == WorkState::pending && block.stream.get() != stream)) continue;
    const Allocation allocation{block.pointer, state == WorkState::completed ? 0 : block.point};
    over = std::move(block.stream);
    block = std::move(used.back());
    used.pop_back();
    pending_ -= size;
    return allocation;
  }
  // If the host runs ahead of its streams, the newest blocks are always in use and hide older, completed ones.
  if (free.empty() && used.size() >= reclaim_at) reclaim(blocks, size, found());
  if (!free.empty()) {
    const Allocation allocation{free.back(), 0};
    free.pop_back();
    cached_ -= size;
    used_ += size;
    return allocation;
  }
  if (used_ + cached_ + size > limit_) {
    reclaim(found());
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
    const bool refused = used_ + size <= limit_;
    throw Error(ErrorKind::memory,
                "cannot allocate " + std::to_string(bytes) + " bytes: " + std::to_string(limit_ - used_) + " of the " +
                    std::to_string(limit_) + " bytes of " + device_ + " are free" +
                    (refused ? ", but the system refused; is there a limit of the process or container, such as "
                               "ulimit -v?"
                             : ""));
  }
  used_ += size;
  return {static_cast<std::byte*>(pointer), 0};
}

void MemoryPool::free(std::byte* pointer, std::size_t bytes, std::vector<Use> uses) noexcept {
  bool failed = false;
  std::erase_if(uses, [&failed](const Use& use) {
    const WorkState state = work_state(*use.stream, use.point);
    failed = failed || state == WorkState::failed;
    return state == WorkState::completed;
  });
  if (failed) [[unlikely]]
    uses = still_pending(std::move(uses));
  const std::size_t size = rounded(bytes);
  if (uses.size() > 1) {
    put_after(std::move(uses), pointer, size);
  } else if (uses.size() == 1) {
    put({pointer, std::move(uses[0].stream), uses[0].point}, size);
  } else {
    put({pointer, nullptr, 0}, size);
  }
}

void MemoryPool::put_after(std::vector<Use> uses, std::byte* pointer, std::size_t size) noexcept {
  after(
      std::move(uses),
      [](void* context) noexcept {
        const std::unique_ptr<Late> late(static_cast<Late*>(context));
        late->pool->put({late->pointer, nullptr, 0}, late->size);
      },
      new Late{this, pointer, size});
}

void MemoryPool::put(Block block, std::size_t size) noexcept {
  std::optional<Reclaimed> reclaimed;
  std::lock_guard lock(mutex_);
  Blocks& blocks = blocks_[size];
  if (!block.stream) {
    blocks.free.push_back(block.pointer);
    used_ -= size;
    cached_ += size;
    return trim_excess();
  }
  blocks.used.push_back(std::move(block));
  pending_ += size;
  // Blocks of sizes that nobody asks for again are examined here alone.
  if (pending_ < examine_at_) return;
  reclaim(reclaimed.emplace(*this));
  examine_at_ = std::max(release_threshold, 2 * pending_);
}

// Makes blocks with completed uses free for everyone.
void MemoryPool::reclaim(Blocks& blocks, std::size_t size, Reclaimed& reclaimed) noexcept {
  std::erase_if(blocks.used, [&](Block& block) {
    const WorkState state = work_state(*block.stream, block.point);
    if (state == WorkState::pending) return false;
    pending_ -= size;
    if (state == WorkState::failed) {
      reclaimed.failed.push_back({std::move(block), size});
      return true;
    }
    reclaimed.over.push_back(std::move(block.stream));
    blocks.free.push_back(block.pointer);
    used_ -= size;
    cached_ += size;
    return true;
  });
  blocks.reclaim_at = std::max(2 * blocks.used.size(), 2 * search_depth);
}

void MemoryPool::reclaim(Reclaimed& reclaimed) noexcept {
  for (auto& [size, blocks] : blocks_) reclaim(blocks, size, reclaimed);
  trim_excess();
}

void MemoryPool::trim_excess() noexcept {
  if (cached_ > release_threshold) trim(release_threshold / 2);
}

void MemoryPool::trim(std::size_t keep) noexcept {
  for (auto entry = blocks_.rbegin(); entry != blocks_.rend(); ++entry) {
    auto& [size, blocks] = *entry;
    while (!blocks.free.empty() && cached_ > keep) {
      source_.release(blocks.free.back(), size);
      blocks.free.pop_back();
      cached_ -= size;
    }
  }
}

void MemoryPool::reclaim() {
  Reclaimed reclaimed(*this);
  std::lock_guard lock(mutex_);
  reclaim(reclaimed);
}

std::size_t MemoryPool::available() {
  Reclaimed reclaimed(*this);
  std::lock_guard lock(mutex_);
  reclaim(reclaimed);
  return limit_ - used_;
}

Allocation CpuBackend::allocate(Stream* stream, std::size_t bytes, MemoryKind kind) {
  const Allocation allocation = memory_of(kind).allocate(stream, bytes);
  if (pool_.controller()) [[unlikely]] {
    std::memset(allocation.pointer, unwritten, bytes);
    pool_.controller()->allocated(allocation.pointer);
  }
  return allocation;
}

void CpuBackend::free(std::byte* pointer, std::size_t bytes, MemoryKind kind, std::vector<Use>& uses) noexcept {
  if (pool_.controller()) [[unlikely]] {
    const std::lock_guard lock(mutex_);
    return held_.push_back({pointer, bytes, kind, std::move(uses)});
  }
  memory_of(kind).free(pointer, bytes, std::move(uses));
}

std::size_t CpuBackend::free_memory() {
  return std::min(memory_.available(), capabilities_.total_memory - pinned_.used());
}

}  // namespace anabranch::cpu
