// Memory that others work with past us, on devices that run nothing.
#include "anabranch/hazard/external_use.hpp"

#include "gate.hpp"
#include "program.hpp"

namespace anabranch {
namespace {

using namespace check;

constexpr ByteRange all{0, 64};

TEST_IN(Setting, a_use_that_ends_is_an_access) {
  const Ref<ExternalUse> use = ExternalUse::open(a);
  ExternalUse::lend(*a, *x, all);
  CHECK(program.access(*b, x, Access::write).empty());
  use->close(HazardMode::automatic, {});
  CHECK_EQUAL(program.access(*b, x, Access::write).size(), std::size_t{1});
  CHECK(program.access(*b, x, Access::write).empty());
  use->close(HazardMode::automatic, {});
  CHECK(program.access(*b, x, Access::write).empty());
}

TEST_IN(Setting, what_is_lent_is_looked_at_every_time) {
  CHECK(x->accesses().only(*a));
  const Ref<ExternalUse> use = ExternalUse::open(a);
  ExternalUse::lend(*a, *x, all);
  CHECK(!x->accesses().only(*a));
  use->close(HazardMode::automatic, {});
  CHECK(x->accesses().only(*a));
}

TEST_IN(Setting, an_open_use_counts_anew_each_time_somebody_looks) {
  const Ref<ExternalUse> use = ExternalUse::open(a);
  ExternalUse::lend(*a, *x, all);
  for (int round = 0; round < 3; ++round) {
    ExternalUse::note(*x, b.get());
    CHECK_EQUAL(program.access(*b, x, Access::write).size(), std::size_t{1});
    ExternalUse::note(*x, a.get());
    CHECK(program.access(*b, x, Access::write).empty());
  }
  use->close(HazardMode::automatic, {});
}

TEST(an_open_use_counts_for_blocks_that_share_bytes_with_what_is_lent) {
  Program program;
  static std::byte memory[96];
  const auto a = stream(device());
  const auto b = stream(device());
  const auto x = Storage::adopt(device(), memory, 64, false, nullptr, nullptr);
  const auto y = Storage::adopt(device(), memory + 32, 64, false, nullptr, nullptr);
  const Ref<ExternalUse> use = ExternalUse::open(a);
  ExternalUse::lend(*a, *x, all);
  for (int round = 0; round < 3; ++round) {
    ExternalUse::note(*y, b.get());
    CHECK(program.access(*b, y, Access::write, {32, 64}).empty());
    CHECK_EQUAL(program.access(*b, y, Access::write).size(), std::size_t{1});
    ExternalUse::note(*y, a.get());
    CHECK(program.access(*b, y, Access::write).empty());
  }
  use->close(HazardMode::automatic, {});
}

TEST_IN(Setting, only_bytes_that_were_lent_count_to_the_stream_that_has_them) {
  const Gate gate(*a);  // so that nothing is known to be over
  const Ref<ExternalUse> use = ExternalUse::open(a);
  const Ref<ExternalUse> other = ExternalUse::open(c);
  ExternalUse::lend(*a, *x, {0, 16});
  ExternalUse::lend(*a, *x, {4, 8});
  ExternalUse::lend(*c, *block(), all);
  CHECK_EQUAL(x->accesses().lent().size(), std::size_t{1});
  use->close(HazardMode::automatic, {});
  other->close(HazardMode::automatic, {});
  CHECK(program.access(*b, x, Access::write, {16, 64}).empty());
  CHECK_EQUAL(program.access(*b, x, Access::write).size(), std::size_t{1});
}

TEST(many_parts_are_kept_as_one) {
  Program program;
  const auto a = stream(device());
  const auto b = stream(device());
  const auto x = block(1000);
  const Gate gate(*a);  // so that nothing is known to be over
  const Ref<ExternalUse> use = ExternalUse::open(a);
  for (std::size_t i = 0; i < 100; ++i) ExternalUse::lend(*a, *x, {10 * i, 10 * i + 1});
  CHECK(x->accesses().lent().size() < 10);
  use->close(HazardMode::automatic, {});
  for (std::size_t i = 0; i < 100; i += 9) {
    const auto anew = stream(device());
    CHECK(!program.access(*anew, x, Access::read, {10 * i, 10 * i + 1}).empty());
  }
}

TEST(a_read_only_block_is_only_read) {
  Program program;
  static std::byte memory[64];
  const auto a = stream(device());
  const auto b = stream(device());
  const auto x = Storage::adopt(device(), memory, sizeof memory, true, nullptr, nullptr);
  const Gate gate(*a);  // so that nothing is known to be over
  const Ref<ExternalUse> use = ExternalUse::open(a);
  ExternalUse::lend(*a, *x, all);
  use->close(HazardMode::automatic, {});
  CHECK(program.access(*b, x, Access::read).empty());
  CHECK_EQUAL(program.access(*b, x, Access::write).size(), std::size_t{1});
}

TEST(a_use_keeps_nothing) {
  static std::byte memory[64];
  static bool released;
  const auto a = stream(device());
  const Ref<ExternalUse> use = ExternalUse::open(a);
  auto x = Storage::adopt(device(), memory, sizeof memory, false, &released,
                          [](void* owner) noexcept { *static_cast<bool*>(owner) = true; });
  ExternalUse::lend(*a, *x, all);
  x.reset();
  CHECK(released);
  // Whose record this is now is lent to nobody.
  const auto y = block();
  CHECK(y->accesses().lent().empty());
  use->close(HazardMode::automatic, {});
  CHECK(y->accesses().only(*a));
}

TEST(memory_that_goes_while_it_is_lent_goes_back_after_what_the_stream_has) {
  const auto a = stream(device());
  null_device().take_calls();
  const Ref<ExternalUse> use = ExternalUse::open(a);
  {
    const Gate gate(*a);
    auto x = block(4096);
    ExternalUse::lend(*a, *x, {0, 4096});
    const std::size_t free = device().free_memory();
    x.reset();
    CHECK_EQUAL(device().free_memory(), free);
  }
  use->close(HazardMode::automatic, {});
}

}  // namespace
}  // namespace anabranch
