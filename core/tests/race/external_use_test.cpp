// Memory lent, looked at, dropped and taken back by many threads. To be run under ThreadSanitizer.
#include "anabranch/hazard/external_use.hpp"

#include "cpu/device.hpp"
#include "threads.hpp"

namespace anabranch::cpu {
namespace {

using namespace check;

constexpr std::size_t limit = std::size_t{1} << 26;

TEST(uses_come_and_go) {
  CpuBackend& device = make_device(2, limit);
  const auto shared = Storage::allocate(device, nullptr, 1000, MemoryKind::device);
  in_threads(4, [&](int thread) {
    for (int round = 0; round < 200; ++round) {
      const auto a = stream(device);
      const Ref<ExternalUse> use = ExternalUse::open(a);
      const auto low = static_cast<std::size_t>(100 * thread);
      ExternalUse::lend(*a, *shared, {low, low + 100});
      auto own = Storage::allocate(device, a.get(), 1000, MemoryKind::device);
      ExternalUse::lend(*a, *own, {0, 1000});
      ExternalUse::note(*shared, nullptr);
      if (round % 2) own.reset();
      use->close(HazardMode::automatic, {});
      shared->uses(Access::write, {0, 1000});
    }
  });
  CHECK(shared->accesses().lent().empty());
}

TEST(memory_is_dropped_while_its_use_ends) {
  CpuBackend& device = make_device(2, limit);
  for (int round = 0; round < 200; ++round) {
    const auto a = stream(device);
    const Ref<ExternalUse> use = ExternalUse::open(a);
    std::vector<Ref<Storage>> storages;
    for (int i = 0; i < 4; ++i) {
      storages.push_back(Storage::allocate(device, nullptr, 100, MemoryKind::device));
      ExternalUse::lend(*a, *storages.back(), {0, 100});
    }
    in_threads(2, [&](int thread) {
      if (thread == 0) {
        storages.clear();
      } else {
        use->close(HazardMode::automatic, {});
      }
    });
  }
  CHECK(eventually([&] { return device.free_memory() == limit; }));
}

}  // namespace
}  // namespace anabranch::cpu
