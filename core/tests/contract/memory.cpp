// Memory: what is handed out, and when it is given back.
#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "contract.hpp"

namespace anabranch::contract {
namespace {

using namespace check;

constexpr std::size_t limit = std::size_t{1} << 20;
constexpr std::size_t most = 3 * (limit >> 2);  // two such blocks do not fit

Ref<Storage> allocate(Stream& stream, std::size_t bytes) {
  return Storage::allocate(stream.backend(), &stream, bytes, MemoryKind::device);
}

// A device of so much memory.
Backend& limited() {
  need(instance().limits_memory, "has all the memory there is");
  return instance().make(limit);
}

ByteRange all(const Storage& storage) { return {0, storage.bytes()}; }

// Enqueues an operation that uses the storage.
void use(Stream& stream, Storage& storage, Access access = Access::write) {
  storage.accesses().note(stream, call(stream, [] {}), access, all(storage));
}

TEST(storage_is_what_was_asked_for) {
  Backend& device = instance().make(limit);
  const auto a = stream(device);
  const auto storage = allocate(*a, 1000);
  const auto other = allocate(*a, 1000);
  CHECK(&storage->backend() == &device);
  CHECK_EQUAL(storage->bytes(), std::size_t{1000});
  CHECK(storage->kind() == MemoryKind::device);
  CHECK(!storage->read_only());
  CHECK(storage->pointer() != nullptr);
  CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(storage->pointer()) % 256, std::uintptr_t{0});
  const auto distance =
      reinterpret_cast<std::intptr_t>(storage->pointer()) - reinterpret_cast<std::intptr_t>(other->pointer());
  CHECK(std::abs(distance) >= 1000);
  for (const Use& use : storage->uses(Access::read_write, all(*storage))) CHECK(use.stream == a);
}

TEST(no_bytes_need_no_memory) {
  Backend& device = limited();
  const auto a = stream(device);
  const auto storage = allocate(*a, 0);
  CHECK_EQUAL(storage->bytes(), std::size_t{0});
  CHECK_EQUAL(device.free_memory(), limit);
}

TEST(memory_is_counted) {
  Backend& device = limited();
  CHECK_EQUAL(device.capabilities().total_memory, limit);
  CHECK_EQUAL(device.free_memory(), limit);
  const auto a = stream(device);
  auto storage = allocate(*a, 5000);
  CHECK(device.free_memory() <= limit - 5000);
  storage.reset();
  CHECK_EQUAL(device.free_memory(), limit);
  for (int i = 0; i < 100; ++i) allocate(*a, most);
  CHECK_EQUAL(device.free_memory(), limit);
}

TEST(memory_may_be_allocated_for_no_stream) {
  Backend& device = instance().make(limit);
  const auto a = stream(device);
  const Gate gate(*a);
  const auto storage = Storage::allocate(device, nullptr, 1000, MemoryKind::pinned);
  CHECK(storage->pointer() != nullptr);
  CHECK(storage->kind() == MemoryKind::pinned);
  CHECK(storage->uses(Access::write, all(*storage)).empty());
}

TEST(exhausted_memory_is_an_error_with_the_numbers) {
  Backend& device = limited();
  const auto a = stream(device);
  const auto storage = allocate(*a, most);
  for (const std::size_t bytes : {most, limit + 1, std::size_t{1} << 62}) {
    try {
      allocate(*a, bytes);
      CHECK(!"allocated");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::memory);
      const std::string message = error.what();
      CHECK(message.find(std::to_string(bytes)) != std::string::npos);
      CHECK(message.find(std::to_string(limit)) != std::string::npos);
    }
  }
  CHECK(device.free_memory() <= limit - most);
}

TEST(memory_is_given_back_after_its_use) {
  Backend& device = limited();
  const auto a = stream(device);
  const auto b = stream(device);
  auto storage = allocate(*a, most);
  Gate gate(*a);
  use(*a, *storage);
  storage.reset();
  CHECK_THROWS(Error, allocate(*b, most));
  gate.open();
  finish(*a);
  CHECK(eventually([&] { return device.free_memory() == limit; }));
  allocate(*b, most);
}

TEST(memory_is_given_back_after_every_use) {
  Backend& device = limited();
  const auto a = stream(device);
  const auto b = stream(device);
  const auto c = stream(device);
  for (const bool first_first : {true, false}) {
    auto storage = allocate(*a, most);
    Gate gate_a(*a);
    Gate gate_b(*b);
    use(*a, *storage);
    use(*b, *storage, Access::read);
    storage.reset();
    CHECK_THROWS(Error, allocate(*c, most));
    (first_first ? gate_a : gate_b).open();
    finish(first_first ? *a : *b);
    CHECK_THROWS(Error, allocate(*c, most));
    (first_first ? gate_b : gate_a).open();
    finish(first_first ? *b : *a);
    CHECK(eventually([&] { return device.free_memory() == limit; }));
    allocate(*c, most);
  }
}

TEST(memory_is_given_back_after_use_by_another_device) {
  Backend& device = limited();
  const auto a = stream(device);
  const auto there = stream(instance().second);
  auto storage = allocate(*a, most);
  Gate gate(*there);
  use(*there, *storage);
  storage.reset();
  CHECK_THROWS(Error, allocate(*a, most));
  gate.open();
  finish(*there);
  CHECK(eventually([&] { return device.free_memory() == limit; }));
}

TEST(memory_is_given_back_though_its_use_failed) {
  Backend& device = limited();
  const auto a = stream(device);
  const auto b = stream(device);
  auto storage = allocate(*a, most);
  {
    const Gate gate(*a);
    fail(*a, "broken");
    use(*a, *storage);
    use(*b, *storage);
    storage.reset();
  }
  CHECK(eventually([&] { return device.free_memory() == limit; }));
}

TEST(memory_may_be_used_while_its_stream_is_gone) {
  Backend& device = limited();
  auto a = stream(device);
  auto storage = allocate(*a, most);
  Gate gate(*a);
  use(*a, *storage);
  a.reset();
  storage.reset();
  CHECK(device.free_memory() < limit);
  gate.open();
  CHECK(eventually([&] { return device.free_memory() == limit; }));
}

TEST(a_read_has_to_wait_for_writes_and_a_write_for_all) {
  Backend& device = instance().first;
  const auto a = stream(device);
  const auto b = stream(device);
  const auto storage = allocate(*a, 100);
  const Gate gate_a(*a);
  const Gate gate_b(*b);
  use(*a, *storage, Access::write);
  const Point wrote = a->issued();
  use(*a, *storage, Access::read);
  use(*b, *storage, Access::read);
  const std::vector<Use> writes = storage->uses(Access::read, all(*storage));
  CHECK_EQUAL(writes.size(), std::size_t{1});
  CHECK(writes[0].stream == a);
  CHECK_EQUAL(writes[0].point, wrote);
  const std::vector<Use> uses = storage->uses(Access::write, all(*storage));
  CHECK_EQUAL(uses.size(), std::size_t{3});
  CHECK_EQUAL(uses[1].point, a->issued());
  CHECK(uses[2].stream == b);
  CHECK_EQUAL(uses[2].point, b->issued());
  CHECK(uses[2].access == Access::read);
  use(*b, *storage, Access::read_write);
  CHECK_EQUAL(storage->uses(Access::read, all(*storage)).size(), std::size_t{2});
}

TEST(only_uses_of_the_same_bytes_matter) {
  const auto a = stream(instance().first);
  const auto b = stream(instance().first);
  const auto storage = allocate(*a, 100);
  const Gate gate_a(*a);
  const Gate gate_b(*b);
  storage->accesses().note(*a, a->issued(), Access::write, {0, 50});
  storage->accesses().note(*b, b->issued(), Access::write, {50, 100});
  for (const bool first : {true, false}) {
    const std::vector<Use> uses = storage->uses(Access::write, first ? Footprint{40, 50} : Footprint{50, 51});
    CHECK_EQUAL(uses.size(), std::size_t{1});
    CHECK(uses[0].stream == (first ? a : b));
  }
  CHECK_EQUAL(storage->uses(Access::read, {49, 51}).size(), std::size_t{2});
}

TEST(many_uses_of_many_bytes_are_kept_in_short) {
  const auto a = stream(instance().first);
  const auto b = stream(instance().first);
  const auto storage = allocate(*a, 1000);
  const Gate gate_a(*a);
  const Gate gate_b(*b);
  for (std::size_t i = 0; i < 500; ++i) {
    const auto& stream = i % 2 ? a : b;
    storage->accesses().note(*stream, call(*stream, [] {}), i % 3 ? Access::read : Access::write, {2 * i, 2 * i + 2});
  }
  const std::vector<Use> uses = storage->uses(Access::write, all(*storage));
  CHECK(uses.size() < 100);
  Point of_a = 0;
  Point of_b = 0;
  for (const Use& use : uses) (use.stream == a ? of_a : of_b) = std::max(use.stream == a ? of_a : of_b, use.point);
  CHECK_EQUAL(of_a, a->issued());
  CHECK_EQUAL(of_b, b->issued());
  // Whatever is kept, an access to any bytes waits for the write there.
  for (std::size_t i = 0; i < 500; i += 3) CHECK(!storage->uses(Access::read, {2 * i, 2 * i + 1}).empty());
}

TEST(uses_by_thousands_of_streams_are_all_kept_until_they_are_over) {
  constexpr std::size_t many = 2000;
  const auto a = stream(instance().first);
  const auto storage = allocate(*a, 100);
  Gate gate(*a);
  std::vector<Ref<Stream>> readers;
  for (std::size_t i = 0; i < many; ++i) {
    readers.push_back(stream(instance().first));
    instance().first.wait(*readers.back(), *a, gate.point());
    use(*readers.back(), *storage, Access::read);
  }
  CHECK_EQUAL(storage->uses(Access::write, all(*storage)).size(), many);
  gate.open();
  for (const auto& reader : readers) finish(*reader);
  for (std::size_t i = 0; i < 2 * many; ++i) {
    const auto b = stream(instance().first);
    use(*b, *storage, Access::read);
    finish(*b);
  }
  CHECK(storage->uses(Access::write, all(*storage)).size() < 100);
}

TEST(an_older_use_does_not_hide_a_newer_one) {
  const auto a = stream(instance().first);
  const auto storage = allocate(*a, 100);
  const Gate gate(*a);
  const Point older = call(*a, [] {});
  const Point newer = call(*a, [] {});
  storage->accesses().note(*a, newer, Access::write, all(*storage));
  storage->accesses().note(*a, older, Access::write, all(*storage));
  CHECK_EQUAL(storage->uses(Access::write, all(*storage)).at(0).point, newer);
}

TEST(uses_that_are_over_are_forgotten) {
  Backend& device = instance().first;
  const auto a = stream(device);
  const auto storage = allocate(*a, 100);
  finish(*a);  // where earlier tests may have memory to free
  for (int i = 0; i < 100; ++i) {
    const auto b = stream(device);
    use(*b, *storage);
    finish(*b);
  }
  CHECK(storage->uses(Access::write, all(*storage)).size() <= 1);
}

TEST(foreign_memory_is_released_once_after_its_last_use) {
  static std::atomic<int> released;
  released = 0;
  Backend& device = instance().first;
  const auto a = stream(device);
  const auto b = stream(device);
  int owner = 0;
  std::byte memory[64];
  const auto adopt = [&] {
    return Storage::adopt(device, memory, sizeof memory, true, &owner, [](void* who) noexcept {
      ++*static_cast<int*>(who);
      ++released;
    });
  };
  adopt().reset();
  CHECK_EQUAL(released.load(), 1);  // at once: nothing uses it
  auto storage = adopt();
  CHECK(storage->kind() == MemoryKind::foreign);
  CHECK(storage->read_only());
  CHECK(storage->pointer() == memory);
  Gate gate_a(*a);
  Gate gate_b(*b);
  use(*a, *storage);
  use(*b, *storage);
  storage.reset();
  CHECK_EQUAL(released.load(), 1);
  gate_a.open();
  finish(*a);
  CHECK_EQUAL(released.load(), 1);
  gate_b.open();
  finish(*b);
  CHECK(eventually([] { return released == 2; }));
  CHECK_EQUAL(owner, 2);
}

TEST(after_calls_back_once_every_use_is_over) {
  static std::atomic<int> called;
  called = 0;
  const auto done = [](void*) noexcept { ++called; };
  after({}, done, nullptr);
  CHECK_EQUAL(called.load(), 1);
  const auto a = stream(instance().first);
  const auto b = stream(instance().second);
  Gate gate(*a);
  fail(*b, "broken");
  CHECK_EQUAL(failure_at(*b, b->issued()), "broken");
  after({{a, a->issued()}, {b, b->issued()}, {a, a->issued()}}, done, nullptr);
  CHECK_EQUAL(called.load(), 1);
  gate.open();
  CHECK(eventually([] { return called == 2; }));
}

// Somebody's memory, and how often it was given back.
struct Entrusted {
  alignas(16) std::byte memory[64] = {};
  std::atomic<int> released{0};

  Ref<Storage> to(Stream& stream) {
    return Storage::entrust(stream, memory, sizeof memory, this,
                            [](void* owner) noexcept { ++static_cast<Entrusted*>(owner)->released; });
  }
};

TEST(entrusted_memory_goes_back_after_the_streams_that_used_it) {
  Backend& device = instance().make(limit);
  const auto a = stream(device);
  const auto b = stream(device);
  Entrusted entrusted;
  auto storage = entrusted.to(*a);
  CHECK(storage->kind() == MemoryKind::device);
  use(*a, *storage);
  {
    Gate gate(*b);
    use(*b, *storage);
    storage.reset();
    CHECK_EQUAL(entrusted.released.load(), 0);
  }
  CHECK(eventually([&] { return entrusted.released.load() == 1; }));
}

}  // namespace
}  // namespace anabranch::contract
