// Memory used, noted and dropped by many threads. To be run under ThreadSanitizer.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "cpu/device.hpp"
#include "gate.hpp"
#include "threads.hpp"

namespace anabranch::cpu {
namespace {

using namespace check;

constexpr std::size_t limit = std::size_t{1} << 26;

TEST(storage_is_allocated_used_and_dropped) {
  CpuBackend& device = make_device(2, limit);
  in_threads(4, [&](int thread) {
    std::mt19937 random(static_cast<unsigned>(thread));
    const auto a = stream(device);
    const auto b = stream(device);
    for (int round = 0; round < 400; ++round) {
      const std::size_t bytes = 1 + random() % 2000;
      auto storage = Storage::allocate(device, a.get(), bytes, MemoryKind::device);
      std::byte* const pointer = storage->pointer();
      // A block that comes back too early is written by two at a time, which ThreadSanitizer sees.
      storage->accesses().note(*a, call(*a, [pointer, bytes] { std::memset(pointer, 1, bytes); }), Access::write,
                               {0, bytes});
      if (random() % 2) {
        device.wait(*b, *a, a->issued());
        storage->accesses().note(*b, call(*b, [pointer, bytes] { std::memset(pointer, 2, bytes); }), Access::write,
                                 {0, bytes});
      }
      if (random() % 16 == 0) device.free_memory();
    }
  });
  CHECK(eventually([&] { return device.free_memory() == limit; }));
}

TEST(one_storage_is_shared_by_many_threads) {
  CpuBackend& device = make_device(2, limit);
  for (int round = 0; round < 50; ++round) {
    auto storage = Storage::allocate(device, nullptr, 100, MemoryKind::device);
    std::vector<Ref<Storage>> shares(4, storage);
    storage.reset();
    in_threads(4, [&](int thread) {
      Ref<Storage> own = std::move(shares[static_cast<std::size_t>(thread)]);
      for (int i = 0; i < 5; ++i) {
        const auto a = stream(device);
        own->accesses().note(*a, call(*a, [] {}), thread % 2 ? Access::read : Access::write, {0, 100});
        for (const Use& use : own->uses(Access::read, {0, 100})) device.query(*use.stream, use.point);
      }
    });
  }
  CHECK(eventually([&] { return device.free_memory() == limit; }));
}

TEST(foreign_memory_is_released_once) {
  CpuBackend& device = make_device(2);
  std::vector<std::atomic<int>> released(200);
  for (auto& count : released) {
    auto storage = Storage::adopt(device, &count, sizeof count, false, &count,
                                  [](void* owner) noexcept { ++*static_cast<std::atomic<int>*>(owner); });
    const Ref<Stream> streams[] = {stream(device), stream(device), stream(device)};
    for (const auto& each : streams)
      storage->accesses().note(*each, call(*each, [] {}), Access::write, {0, sizeof count});
  }
  CHECK(eventually(
      [&] { return std::all_of(released.begin(), released.end(), [](const auto& count) { return count > 0; }); }));
  for (const auto& count : released) CHECK_EQUAL(count.load(), 1);
}

TEST(memory_of_others_is_handed_in_by_many_threads_whole_and_in_part) {
  CpuBackend& device = make_device(2);
  static std::atomic<int> released;
  released = 0;
  constexpr int rounds = 300;
  std::byte memory[64];
  in_threads(4, [&](int thread) {
    std::mt19937 random(static_cast<unsigned>(thread));
    const auto a = stream(device);
    for (int round = 0; round < rounds; ++round) {
      const std::size_t first = random() % 32;
      const std::size_t bytes = 1 + random() % 32;
      auto storage = Storage::adopt(device, memory + first, bytes, false, nullptr, [](void*) noexcept { ++released; });
      for (const Use& use : storage->uses(Access::write, {0, bytes})) device.wait(*a, *use.stream, use.point);
      storage->accesses().note(*a, call(*a, [] {}), Access::write, {0, bytes});
    }
    device.synchronize(*a, a->issued(), std::chrono::seconds(10));
  });
  CHECK(eventually([] { return released == 4 * rounds; }));
}

// Blocks of memory of others, all of which a held stream uses.
struct Blocks {
  explicit Blocks(std::size_t count) : memory(count * 2 * bytes), going(count) {
    for (std::size_t i = 0; i < count; ++i) {
      going[i] = adopt(i, 0);
      going[i]->accesses().note(*held, gate.point(), Access::write, {0, bytes});
    }
  }
  Ref<Storage> adopt(std::size_t i, std::size_t first) {
    return Storage::adopt(device, memory.data() + 2 * bytes * i + first, bytes, false, nullptr, [](void*) noexcept {});
  }
  // Whether an access to bytes that such a block shares with this one is known to come after that.
  bool is_known(const Storage& storage, std::size_t byte) const {
    return !storage.accesses().only(*other) && !storage.uses(Access::read, {byte, byte + 1}).empty() &&
           !storage.conflicts(Lane().past(), other.get(), Access::read, {byte, byte + 1}).empty();
  }

  static constexpr std::size_t bytes = 64;
  CpuBackend& device = make_device(2);
  Ref<Stream> held = stream(device);
  Ref<Stream> other = stream(device);
  std::vector<std::byte> memory;
  Gate gate{*held};
  std::vector<Ref<Storage>> going;
};

TEST(what_a_neighbour_has_under_way_is_known_while_it_goes) {
  constexpr std::size_t rounds = 4000;
  Blocks blocks(rounds);
  std::vector<Ref<Storage>> kept;
  for (std::size_t i = 0; i < rounds; ++i) kept.push_back(blocks.adopt(i, 32));
  std::atomic<std::size_t> looked{0};
  std::atomic<std::size_t> gone{0};
  std::atomic<int> missed{0};
  in_threads(2, [&](int thread) {
    for (std::size_t i = 0; i < rounds; ++i) {
      if (thread == 0) {
        while (looked < i) std::this_thread::yield();
        blocks.going[i].reset();
        gone = i + 1;
      } else {
        do {
          if (!blocks.is_known(*kept[i], 31)) ++missed;
          looked = i;
        } while (gone == i);
      }
    }
  });
  CHECK_EQUAL(missed.load(), 0);
}

TEST(what_memory_that_goes_has_under_way_is_known_to_who_comes) {
  constexpr std::size_t rounds = 4000;
  Blocks blocks(rounds);
  std::atomic<std::size_t> begun{0};
  std::atomic<int> missed{0};
  in_threads(2, [&](int thread) {
    for (std::size_t i = 0; i < rounds; ++i) {
      for (++begun; begun < 2 * i + 2;) std::this_thread::yield();
      if (thread == 0) {
        blocks.going[i].reset();
      } else if (const auto come = blocks.adopt(i, 32); !blocks.is_known(*come, 31)) {
        ++missed;
      }
    }
  });
  CHECK_EQUAL(missed.load(), 0);
}

}  // namespace
}  // namespace anabranch::cpu
