// Memory that others know of: what they hand in again, whole or in part, and while it is in use.
#include <array>
#include <atomic>

#include "contract.hpp"

namespace anabranch::contract {
namespace {

using namespace check;

alignas(64) std::array<std::byte, 64> memory;
std::atomic<int> released;

Ref<Storage> adopt(Backend& device, std::size_t first, std::size_t bytes, bool read_only = false) {
  return Storage::adopt(device, memory.data() + first, bytes, read_only, nullptr, [](void*) noexcept { ++released; });
}

std::size_t found(const Ref<Storage>& storage, ByteRange where, Access access = Access::write) {
  const std::size_t uses = storage->uses(access, where).size();
  CHECK_EQUAL(storage->conflicts(Lane().past(), nullptr, access, where).size(), uses);
  return uses;
}

TEST(what_has_all_of_the_bytes_is_the_same) {
  released = 0;
  Backend& device = instance().first;
  const auto whole = adopt(device, 0, 64, true);
  const auto part = adopt(device, 16, 32);
  CHECK(part == whole);
  CHECK_EQUAL(released.load(), 1);
  CHECK(!whole->read_only());  // the second owner lets it be written
}

TEST(who_shares_bytes_knows_of_each_other_s_uses) {
  Backend& device = instance().first;
  const auto a = stream(device);
  const auto low = adopt(device, 0, 32);
  const auto high = adopt(device, 16, 48);
  const auto whole = adopt(device, 0, 64);
  CHECK(low != high && high != whole && low != whole);
  for (const auto& storage : {low, high, whole}) CHECK(!storage->accesses().only(*a));
  Gate gate(*a);
  high->accesses().note(*a, call(*a, [] {}), Access::write, {0, 16});  // the memory's bytes 16 to 32
  CHECK_EQUAL(found(low, {0, 16}), 0U);
  CHECK_EQUAL(found(low, {16, 32}), 1U);
  CHECK_EQUAL(found(whole, {0, 16}), 0U);
  CHECK_EQUAL(found(whole, {31, 64}), 1U);
  CHECK_EQUAL(found(whole, {32, 64}), 0U);
  CHECK_EQUAL(found(high, {0, 48}), 1U);
  const Use use = low->uses(Access::read, {0, 32}).at(0);
  CHECK(use.stream == a);
  const Use conflict = whole->conflicts(Lane().past(), nullptr, Access::read, {0, 64}).at(0);
  CHECK(conflict.where.bytes() == (ByteRange{16, 32}));  // of the block that was asked
  gate.open();
  finish(*a);
}

TEST(who_is_left_alone_is_as_before) {
  Backend& device = instance().first;
  const auto a = stream(device);
  auto low = adopt(device, 0, 32);
  const auto whole = adopt(device, 0, 64);
  const auto high = adopt(device, 32, 32);
  CHECK(high == whole);
  CHECK(!whole->accesses().only(*a));
  low.reset();
  CHECK(whole->accesses().only(*a));
  low = adopt(device, 0, 32);
  CHECK(low == whole);
}

TEST(elements_between_each_other_share_no_byte) {
  Backend& device = instance().first;
  const auto a = stream(device);
  const auto low = adopt(device, 0, 60);
  const auto high = adopt(device, 4, 60);
  const std::int64_t shape = 8;
  Layout every_other = row_major(1, &shape, 4);
  every_other.strides[0] = 8;
  Gate gate(*a);
  low->accesses().note(*a, call(*a, [] {}), Access::write, Footprint(0, every_other));
  CHECK_EQUAL(high->uses(Access::write, Footprint(0, every_other)).size(), 0U);
  CHECK_EQUAL(high->uses(Access::write, Footprint(4, every_other)).size(), 1U);
  gate.open();
  finish(*a);
}

TEST(what_is_under_way_is_known_though_the_memory_is_gone) {
  released = 0;
  Backend& device = instance().first;
  const auto a = stream(device);
  const auto kept = adopt(device, 0, 32);
  Gate gate(*a);
  auto going = adopt(device, 8, 56);
  going->accesses().note(*a, call(*a, [] {}), Access::write, {0, 56});
  going.reset();
  CHECK_EQUAL(released.load(), 0);
  CHECK_EQUAL(found(kept, {0, 8}), 0U);
  CHECK_EQUAL(found(kept, {0, 9}), 1U);
  const auto again = adopt(device, 32, 32);
  CHECK_EQUAL(found(again, {31, 32}), 1U);
  gate.open();
  finish(*a);
  CHECK(eventually([] { return released == 1; }));
  // Whoever uses the memory now may have it from somebody else.
  CHECK_EQUAL(found(adopt(device, 32, 33), {0, 33}), 1U);  // what shares bytes with it still remembers
}

TEST(who_is_kept_remembers_of_those_that_come_and_go_only_what_is_under_way) {
  Backend& device = instance().first;
  const auto kept = adopt(device, 0, 32);
  const auto use_all = [&](const Ref<Stream>& stream) {
    const auto going = adopt(device, 0, 64);
    going->accesses().note(*stream, call(*stream, [] {}), Access::write, {0, 64});
  };
  const auto a = stream(device);
  Gate gate(*a);
  for (int round = 0; round < 20; ++round) use_all(a);
  CHECK_EQUAL(found(kept, {0, 32}), 1U);
  kept->accesses().note(*a, call(*a, [] {}), Access::write, {0, 32});
  CHECK_EQUAL(found(kept, {0, 32}), 1U);
  for (int round = 0; round < 20; ++round) {
    const auto b = stream(device);
    Gate held(*b);
    use_all(b);
    held.open();
    finish(*b);
  }
  CHECK(found(kept, {0, 32}) < 10);
  gate.open();
  finish(*a);
}

TEST(memory_of_ours_that_comes_back_is_ours) {
  static std::atomic<int> let_go;  // its own: what earlier tests had may be let go of late
  Backend& device = instance().first;
  const auto a = stream(device);
  const auto ours = Storage::allocate(device, a.get(), 1000, MemoryKind::device);
  const auto adopt_it = [&](std::size_t first) {
    return Storage::adopt(device, ours->pointer() + first, 100, false, nullptr, [](void*) noexcept { ++let_go; });
  };
  CHECK(adopt_it(0) != ours);  // nobody was told of it
  ours->share();
  ours->share();
  CHECK(adopt_it(0) == ours);
  CHECK(adopt_it(900) == ours);
  CHECK_EQUAL(let_go.load(), 3);
}

}  // namespace
}  // namespace anabranch::contract
