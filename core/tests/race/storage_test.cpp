// Memory used, noted and dropped by many threads. To be run under ThreadSanitizer.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "cpu/device.hpp"
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
      storage->note(*a, call(*a, [pointer, bytes] { std::memset(pointer, 1, bytes); }), Access::write, {0, bytes});
      if (random() % 2) {
        device.wait(*b, *a, a->issued());
        storage->note(*b, call(*b, [pointer, bytes] { std::memset(pointer, 2, bytes); }), Access::write, {0, bytes});
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
        own->note(*a, call(*a, [] {}), thread % 2 ? Access::read : Access::write, {0, 100});
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
    for (const auto& each : streams) storage->note(*each, call(*each, [] {}), Access::write, {0, sizeof count});
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
      storage->note(*a, call(*a, [] {}), Access::write, {0, bytes});
    }
    device.synchronize(*a, a->issued(), std::chrono::seconds(10));
  });
  CHECK(eventually([] { return released == 4 * rounds; }));
}

}  // namespace
}  // namespace anabranch::cpu
