// What graphs keep track of, whatever runs them.
#include "anabranch/graph/graph.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

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

// Whoever has taken up works tells by their versions what to take up again.
TEST(what_is_changed_has_a_version_that_nothing_had_before) {
  auto works = make_ref<Works>();
  for (int i = 0; i < 2; ++i) works->of.push_back(make_ref<Work>(Work::What()));
  std::vector<std::uint64_t> all{works->version};
  std::vector<std::uint64_t> of_node{works->of[0]->version};
  const std::uint64_t other = works->of[1]->version;
  Ref<Works> replayed;
  for (int round = 0; round < 6; ++round) {
    if (round % 3 == 2) replayed = works;  // so that the works are changed in a copy, not in place
    Change change(works);
    change.what(0);
    for (const auto& [seen, version] : {std::pair{&all, works->version}, std::pair{&of_node, works->of[0]->version}}) {
      CHECK_EQUAL(std::count(seen->begin(), seen->end(), version), 0);
      seen->push_back(version);
    }
    CHECK_EQUAL(works->of[1]->version, other);
  }
}

}  // namespace
}  // namespace anabranch
