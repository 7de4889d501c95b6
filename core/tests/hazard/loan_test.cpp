// Memory that others work with past us, on devices that run nothing.
#include "anabranch/loan.hpp"

#include "gate.hpp"
#include "program.hpp"

namespace anabranch {
namespace {

using namespace check;

constexpr ByteRange all{0, 64};

TEST(a_loan_that_ends_is_an_access) {
  Program program;
  const auto a = stream(device());
  const auto b = stream(device());
  const auto x = block();
  const Ref<Loan> loan = Loan::open(a);
  Loan::lend(*a, *x, all);
  CHECK(program.access(*b, x, Access::write).empty());
  loan->close(HazardMode::automatic, {});
  CHECK_EQUAL(program.access(*b, x, Access::write).size(), std::size_t{1});
  CHECK(program.access(*b, x, Access::write).empty());
  loan->close(HazardMode::automatic, {});
  CHECK(program.access(*b, x, Access::write).empty());
}

TEST(what_is_lent_is_looked_at_every_time) {
  const auto a = stream(device());
  const auto x = block();
  CHECK(x->only(*a));
  const Ref<Loan> loan = Loan::open(a);
  Loan::lend(*a, *x, all);
  CHECK(!x->only(*a));
  loan->close(HazardMode::automatic, {});
  CHECK(x->only(*a));
}

TEST(an_open_loan_counts_anew_each_time_somebody_looks) {
  Program program;
  const auto a = stream(device());
  const auto b = stream(device());
  const auto x = block();
  const Ref<Loan> loan = Loan::open(a);
  Loan::lend(*a, *x, all);
  for (int round = 0; round < 3; ++round) {
    Loan::note(*x, b.get());
    CHECK_EQUAL(program.access(*b, x, Access::write).size(), std::size_t{1});
    Loan::note(*x, a.get());
    CHECK(program.access(*b, x, Access::write).empty());
  }
  loan->close(HazardMode::automatic, {});
}

TEST(an_open_loan_counts_for_blocks_that_share_bytes_with_what_is_lent) {
  Program program;
  static std::byte memory[96];
  const auto a = stream(device());
  const auto b = stream(device());
  const auto x = Storage::adopt(device(), memory, 64, false, nullptr, nullptr);
  const auto y = Storage::adopt(device(), memory + 32, 64, false, nullptr, nullptr);
  const Ref<Loan> loan = Loan::open(a);
  Loan::lend(*a, *x, all);
  for (int round = 0; round < 3; ++round) {
    Loan::note(*y, b.get());
    CHECK(program.access(*b, y, Access::write, {32, 64}).empty());
    CHECK_EQUAL(program.access(*b, y, Access::write).size(), std::size_t{1});
    Loan::note(*y, a.get());
    CHECK(program.access(*b, y, Access::write).empty());
  }
  loan->close(HazardMode::automatic, {});
}

TEST(only_bytes_that_were_lent_count_to_the_stream_that_has_them) {
  Program program;
  const auto a = stream(device());
  const auto b = stream(device());
  const auto c = stream(device());
  const auto x = block();
  const Gate gate(*a);  // so that nothing is known to be over
  const Ref<Loan> loan = Loan::open(a);
  const Ref<Loan> other = Loan::open(c);
  Loan::lend(*a, *x, {0, 16});
  Loan::lend(*a, *x, {4, 8});
  Loan::lend(*c, *block(), all);
  CHECK_EQUAL(x->lent().size(), std::size_t{1});
  loan->close(HazardMode::automatic, {});
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
  const Ref<Loan> loan = Loan::open(a);
  for (std::size_t i = 0; i < 100; ++i) Loan::lend(*a, *x, {10 * i, 10 * i + 1});
  CHECK(x->lent().size() < 10);
  loan->close(HazardMode::automatic, {});
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
  const Ref<Loan> loan = Loan::open(a);
  Loan::lend(*a, *x, all);
  loan->close(HazardMode::automatic, {});
  CHECK(program.access(*b, x, Access::read).empty());
  CHECK_EQUAL(program.access(*b, x, Access::write).size(), std::size_t{1});
}

TEST(a_loan_keeps_nothing) {
  static std::byte memory[64];
  static bool released;
  const auto a = stream(device());
  const Ref<Loan> loan = Loan::open(a);
  auto x = Storage::adopt(device(), memory, sizeof memory, false, &released,
                          [](void* owner) noexcept { *static_cast<bool*>(owner) = true; });
  Loan::lend(*a, *x, all);
  x.reset();
  CHECK(released);
  // Whose record this is now is lent to nobody.
  const auto y = block();
  CHECK(y->lent().empty());
  loan->close(HazardMode::automatic, {});
  CHECK(y->only(*a));
}

TEST(memory_that_goes_while_it_is_lent_goes_back_after_what_the_stream_has) {
  const auto a = stream(device());
  null_device().take_calls();
  const Ref<Loan> loan = Loan::open(a);
  {
    const Gate gate(*a);
    auto x = block(4096);
    Loan::lend(*a, *x, {0, 4096});
    const std::size_t free = device().free_memory();
    x.reset();
    CHECK_EQUAL(device().free_memory(), free);
  }
  loan->close(HazardMode::automatic, {});
}

}  // namespace
}  // namespace anabranch
