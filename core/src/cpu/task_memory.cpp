#include "task_memory.hpp"

#include <array>
#include <mutex>
#include <new>
#include <utility>

#include "anabranch/lock.hpp"

namespace anabranch::cpu {

// So that the sanitizer sees each.
#ifdef __SANITIZE_ADDRESS__

void* take_task_memory(std::size_t bytes) { return ::operator new(bytes); }
void give_task_memory(void* memory) noexcept { ::operator delete(memory); }

#else

namespace {

// Blocks of a size, a multiple of `step`, go from thread to thread by the batch. No two are in one cache line: they end
// up with several threads.
constexpr std::size_t step = 64;
constexpr std::size_t sizes = 16;
constexpr int batch = 64;

// What is in front of the memory, which is aligned as what `operator new` returns; part of the block's size.
struct alignas(__STDCPP_DEFAULT_NEW_ALIGNMENT__) Block {
  Block* next;  // while nobody has it
  union {
    std::size_t size;   // which of the sizes; those from `sizes` on are nobody's to keep
    Block* next_batch;  // in the first of a batch that no thread has
  };
};

// Batches that no thread has. Never destroyed.
struct Depot {
  SpinLock lock;
  Block* first = nullptr;
};

Depot& depot(std::size_t size) noexcept {
  static auto* const depots = new std::array<Depot, sizes>;
  return (*depots)[size];
}

void store(std::size_t size, Block* first) noexcept {
  Depot& to = depot(size);
  const std::lock_guard lock(to.lock);
  first->next_batch = std::exchange(to.first, first);
}

// A batch from the depot, or a new one.
Block* fetch(std::size_t size) {
  {
    Depot& from = depot(size);
    const std::lock_guard lock(from.lock);
    if (Block* const first = from.first) {
      from.first = first->next_batch;
      return first;
    }
  }
  const std::size_t bytes = size * step;
  auto* memory = static_cast<std::byte*>(::operator new(batch * bytes, std::align_val_t{step}));
  Block* first = nullptr;
  for (int i = 0; i < batch; ++i, memory += bytes) first = new (memory) Block{first, {size}};
  return first;
}

// Has the block brought here from the thread that gave it back, to be written, while this one does other things.
void call_in(const Block* block, std::size_t size) noexcept {
#ifdef __x86_64__
  const auto* line = reinterpret_cast<const char*>(block);
  for (std::size_t i = 0; i < size; ++i, line += step) asm volatile("prefetchw %0" : : "m"(*line));
#else
  static_cast<void>(block);
  static_cast<void>(size);
#endif
}

// What a thread has, of a size.
struct Stock {
  Block* first = nullptr;
  int count = 0;
};

struct Stocks {
  std::array<Stock, sizes> of;
  bool closed = false;  // the thread is ending

  // On the thread that ends; other thread-local destructors may still give blocks back after it. Takes each depot's
  // spin lock, a leaf.
  ~Stocks() {
    closed = true;
    for (std::size_t size = 0; size < sizes; ++size) {
      if (of[size].first) store(size, std::exchange(of[size].first, nullptr));
    }
  }
};
thread_local Stocks stocks;

}  // namespace

void* take_task_memory(std::size_t bytes) {
  const std::size_t size = (sizeof(Block) + bytes + step - 1) / step;
  if (size >= sizes) return new (::operator new(sizeof(Block) + bytes)) Block{nullptr, {size}} + 1;
  Stock& stock = stocks.of[size];
  if (!stock.first) {
    stock.first = fetch(size);
    stock.count = batch;
  }
  Block* const block = stock.first;
  stock.first = block->next;
  --stock.count;
  block->size = size;
  if (stock.first) call_in(stock.first, size);
  return block + 1;
}

void give_task_memory(void* memory) noexcept {
  Block* const block = static_cast<Block*>(memory) - 1;
  const std::size_t size = block->size;
  if (size >= sizes) return ::operator delete(block);
  Stock& stock = stocks.of[size];
  block->next = stock.first;
  stock.first = block;
  if (stocks.closed) return store(size, std::exchange(stock.first, nullptr));
  if (++stock.count < 2 * batch) return;
  // The newer half goes: it is what the thread came across last, and whoever takes it wants it soon.
  Block* last = block;
  for (int i = 1; i < batch; ++i) last = last->next;
  stock.first = std::exchange(last->next, nullptr);
  stock.count -= batch;
  store(size, block);
}

#endif

}  // namespace anabranch::cpu
