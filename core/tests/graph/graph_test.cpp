// What graphs keep track of, whatever runs them.
#include "anabranch/graph/graph.hpp"

#include <algorithm>

#include "check.hpp"
#include "null/backend.hpp"

namespace anabranch {
namespace {

Ref<Storage> memory() {
  static auto* const device = new null::NullBackend(0, std::size_t{1} << 20);
  return Storage::allocate(*device, nullptr, 8, MemoryKind::device);
}

GraphAccesses of_one_node(const std::vector<Ref<Storage>>& blocks) {
  GraphAccesses made;
  for (const Ref<Storage>& block : blocks) made.touches.push_back({0, block.get(), {0, 8}, Access::read_write});
  made.kept = blocks;
  return made;
}

bool keeps(const GraphAccesses& accesses, const Ref<Storage>& block) {
  return std::count(accesses.kept.begin(), accesses.kept.end(), block) == 1;
}

TEST(memory_is_kept_once_however_often_arguments_are_set) {
  const auto x = memory();
  const auto y = memory();
  const auto z = memory();
  GraphAccesses all = of_one_node({x, y});
  all.touches.push_back({1, y.get(), {0, 8}, Access::read});
  for (int call = 0; call < 100; ++call) {
    all = all.with_node(0, of_one_node({x, x, y}));
    CHECK_EQUAL(all.touches.size(), 4U);
    CHECK_EQUAL(all.kept.size(), 2U);
    CHECK(keeps(all, x) && keeps(all, y));
    all = all.with_node(0, of_one_node({call % 2 == 0 ? z : memory()}));
    CHECK_EQUAL(all.touches.size(), 2U);
    CHECK_EQUAL(all.kept.size(), 2U);
    CHECK(keeps(all, y));
  }
}

TEST(accesses_of_other_nodes_stay) {
  const auto x = memory();
  const auto y = memory();
  const GraphAccesses before = of_one_node({x, y});
  const GraphAccesses all = before.with_node(1, of_one_node({y}));
  const auto of = [&](std::uint32_t node) {
    return std::count_if(all.touches.begin(), all.touches.end(), [&](const auto& touch) { return touch.node == node; });
  };
  CHECK_EQUAL(of(0), 2);
  CHECK_EQUAL(of(1), 1);
  CHECK(keeps(all, x) && keeps(all, y));
}

}  // namespace
}  // namespace anabranch
