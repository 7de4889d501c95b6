// The cache of blocks behind the memory of a CPU device.
#include "cpu/memory.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "device.hpp"

namespace anabranch::cpu {
namespace {

using namespace check;

constexpr std::size_t limit = std::size_t{1} << 24;

Ref<Storage> allocate(const Ref<Stream>& stream, std::size_t bytes) {
  return Storage::allocate(stream->backend(), stream.get(), bytes, MemoryKind::device);
}

TEST(a_block_comes_back_to_its_stream_at_once) {
  CpuBackend& device = make_device(1, limit);
  const auto a = stream(device);
  const auto b = stream(device);
  auto storage = allocate(a, 5000);
  std::byte* const block = storage->pointer();
  Gate gate(*a);
  const Point point = call(*a, [] {});
  storage->accesses().note(*a, point, Access::write, {0, 5000});
  storage.reset();
  // Everyone else gets other memory; the stream gets the block, with the point up to which it is still in use.
  const auto other = allocate(b, 5000);
  CHECK(other->pointer() != block);
  const auto shared = Storage::allocate(device, nullptr, 5000, MemoryKind::device);
  CHECK(shared->pointer() != block);
  storage = allocate(a, 5000);
  CHECK(storage->pointer() == block);
  const std::vector<Use> uses = storage->uses(Access::read, {0, 5000});
  CHECK_EQUAL(uses.size(), std::size_t{1});
  CHECK(uses[0].stream == a);
  CHECK_EQUAL(uses[0].point, point);
  gate.open();
}

TEST(large_blocks_begin_at_different_places_of_a_page) {
  constexpr std::size_t page = 4096;
  for (const std::size_t bytes : {std::size_t{1} << 16, std::size_t{1} << 20, std::size_t{5} << 20}) {
    std::set<std::size_t> places;
    std::vector<void*> blocks;
    for (int i = 0; i < 8; ++i) {
      blocks.push_back(allocate_pages(bytes));
      CHECK(blocks.back() != nullptr);
      std::memset(blocks.back(), 1, bytes);
      places.insert(reinterpret_cast<std::uintptr_t>(blocks.back()) % page);
    }
    CHECK_EQUAL(places.size(), blocks.size());
    CHECK(!places.contains(0));
    CHECK(std::all_of(places.begin(), places.end(), [](std::size_t at) { return at % HostSource::alignment == 0; }));
    for (void* block : blocks) release_pages(block, bytes);
  }
}

// Bytes that a pool has of a source whose memory nobody touches.
std::size_t held = 0;

HostSource counted() {
  return {[](std::size_t bytes) noexcept -> void* {
            static std::uintptr_t next = std::uintptr_t{1} << 40;
            held += bytes;
            return reinterpret_cast<void*>(next += bytes);
          },
          [](void*, std::size_t bytes) noexcept { held -= bytes; }};
}

TEST(blocks_of_sizes_that_are_no_longer_asked_for_go_back_to_the_system) {
  constexpr std::size_t most = std::size_t{1} << 30;
  constexpr std::size_t in_flight = most / 2;
  held = 0;
  MemoryPool pool("test", std::size_t{1} << 40, counted());
  const auto a = stream(make_device(1));
  for (std::size_t size = std::size_t{1} << 20; size <= in_flight; size *= 2) {
    Gate gate(*a);
    std::vector<std::byte*> blocks;
    for (std::size_t bytes = 0; bytes < in_flight; bytes += size)
      blocks.push_back(pool.allocate(a.get(), size).pointer);
    const Point point = call(*a, [] {});
    for (std::byte* block : blocks) pool.free(block, size, {{a, point, Access::write}});
    gate.open();
    finish(*a);
    CHECK(held <= 2 * most);
  }
  pool.reclaim();
  CHECK(held <= most);
  CHECK_EQUAL(pool.used(), std::size_t{0});
}

TEST(a_block_is_for_everyone_once_its_use_is_over) {
  CpuBackend& device = make_device(1, limit);
  const auto a = stream(device);
  const auto b = stream(device);
  auto storage = allocate(a, 5000);
  std::byte* const block = storage->pointer();
  storage->accesses().note(*a, call(*a, [] {}), Access::write, {0, 5000});
  finish(*a);
  storage.reset();
  storage = allocate(b, 5000);
  CHECK(storage->pointer() == block);
  CHECK(storage->uses(Access::write, {0, 5000}).empty());
}

// The host is ahead of the stream, so that the newest blocks are never over when it asks for others.
TEST(a_host_that_is_ahead_gets_old_blocks_again) {
  CpuBackend& device = make_device(1, limit);
  const auto a = stream(device);
  const auto b = stream(device);
  constexpr std::size_t ahead = 50;
  std::set<std::byte*> blocks;
  auto gate = std::make_unique<Gate>(*a);
  for (int round = 0; round < 40; ++round) {
    Point last = 0;
    for (std::size_t i = 0; i < ahead; ++i) {
      const auto storage = allocate(b, 5000);
      blocks.insert(storage->pointer());
      last = call(*a, [] {});
      storage->accesses().note(*a, last, Access::write, {0, 5000});
    }
    auto next = std::make_unique<Gate>(*a);
    gate->open();
    gate = std::move(next);
    finish(*a, last);
  }
  gate->open();
  CHECK(blocks.size() <= 4 * ahead);
}

TEST(cached_blocks_make_room_for_other_sizes) {
  CpuBackend& device = make_device(1, limit);
  const auto a = stream(device);
  for (std::size_t bytes = 1024; bytes <= limit; bytes *= 2) allocate(a, bytes);
  CHECK_EQUAL(device.free_memory(), limit);
  allocate(a, limit);
  allocate(a, 1);
  CHECK_EQUAL(device.free_memory(), limit);
}

TEST(all_memory_may_be_allocated) {
  constexpr std::size_t odd = 256 * 3907;  // no size to which others are rounded
  CpuBackend& device = make_device(1, odd);
  const auto a = stream(device);
  auto storage = allocate(a, odd - 100);
  std::memset(storage->pointer(), 1, odd - 100);
  CHECK_THROWS(Error, allocate(a, 1));
  storage.reset();
  CHECK_EQUAL(device.free_memory(), odd);
}

TEST(blocks_in_use_never_overlap) {
  CpuBackend& device = make_device(2, limit);
  std::mt19937 random(8);
  std::vector<Ref<Stream>> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(stream(device));
  std::map<std::byte*, Ref<Storage>> living;
  for (int round = 0; round < 5000; ++round) {
    const auto& stream = streams[random() % streams.size()];
    if (random() % 2 && !living.empty()) {
      auto victim = living.begin();
      std::advance(victim, static_cast<std::ptrdiff_t>(random() % living.size()));
      living.erase(victim);
      continue;
    }
    const std::size_t bytes = 1 + random() % (random() % 8 ? 3000 : 100'000);
    auto storage = allocate(stream, bytes);
    const auto next = living.upper_bound(storage->pointer());
    if (next != living.end()) CHECK(storage->pointer() + bytes <= next->first);
    if (next != living.begin()) {
      CHECK(std::prev(next)->first + std::prev(next)->second->bytes() <= storage->pointer());
    }
    std::memset(storage->pointer(), 0, bytes);
    storage->accesses().note(*stream, call(*stream, [] {}), Access::write, {0, bytes});
    living.emplace(storage->pointer(), std::move(storage));
  }
  living.clear();
  CHECK(eventually([&] { return device.free_memory() == limit; }));
}

}  // namespace
}  // namespace anabranch::cpu
