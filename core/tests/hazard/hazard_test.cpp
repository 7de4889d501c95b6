// Order that is found to be missing, and added, on devices that run nothing.
#include "anabranch/hazard/hazard.hpp"

#include <deque>
#include <random>

#include "anabranch/hazard/host_order.hpp"
#include "anabranch/stream/event.hpp"
#include "gate.hpp"
#include "program.hpp"

namespace anabranch {
namespace {

using namespace check;

TEST_IN(Setting, one_stream_needs_nothing) {
  const std::uint64_t before = added_waits();
  for (const Access access : {Access::write, Access::read, Access::read_write}) {
    CHECK(program.access(*a, x, access).empty());
  }
  CHECK_EQUAL(added_waits(), before);
}

TEST_IN(Setting, what_is_missing_is_added_once) {
  const Gate gate(*a);
  program.access(*a, x, Access::write);
  program.access(*a, y, Access::write);
  const std::uint64_t before = added_waits();
  CHECK_EQUAL(program.access(*b, y, Access::read).size(), std::size_t{1});
  CHECK_EQUAL(added_waits(), before + 1);
  CHECK(program.access(*b, x, Access::read).empty());  // came first
  program.access(*a, x, Access::write);
  CHECK_EQUAL(added_waits(), before + 2);  // after the read
}

TEST_IN(Setting, who_waits_for_the_last_waits_for_all) {
  std::deque<Ref<Stream>> chain;
  for (int i = 0; i < 4; ++i) chain.push_back(stream(device()));
  const Gate gate(*chain[0]);
  // Each reads its own part of what the one before wrote, so all four accesses are remembered.
  for (std::size_t i = 0; i < 4; ++i) program.access(*chain[i], x, Access::read_write, {16 * i, 16 * i + 17});
  const auto last = stream(device());
  const std::uint64_t before = added_waits();
  CHECK_EQUAL(program.access(*last, x, Access::write, {0, 80}).size(), std::size_t{4});
  CHECK_EQUAL(added_waits(), before + 1);
}

TEST_IN(Setting, a_wait_is_learned_up_to_its_operation) {
  const Gate gate(*a);
  program.access(*a, x, Access::write);
  program.access(*a, y, Access::write);
  program.access(*b, x, Access::read);  // waits for the first operation of a
  program.access(*c, y, Access::read);
  c->lane().follow(b->lane().past());
  CHECK_EQUAL(program.access(*b, y, Access::read).size(), std::size_t{1});
}

TEST(the_legacy_stream_and_blocking_ones_are_in_order) {
  Program program;
  const auto legacy = device().default_stream(StreamRole::legacy);
  const auto a = blocking();
  const auto b = blocking();
  const auto other = stream(device());
  const auto x = block();
  const auto y = block();
  CHECK(program.access(*a, x, Access::write).empty());
  CHECK(program.access(*legacy, x, Access::write).empty());
  CHECK(program.access(*b, x, Access::write).empty());
  CHECK(program.access(*b, y, Access::write).empty());
  CHECK_EQUAL(program.access(*a, y, Access::write).size(), std::size_t{1});
  CHECK_EQUAL(program.access(*other, x, Access::write).size(), std::size_t{1});
}

TEST_IN(Setting, what_the_legacy_stream_did_before_any_other_was_there_comes_first) {
  static auto* const fresh = new null::NullBackend(1, std::size_t{1} << 20);
  CHECK(program.access(*fresh->default_stream(StreamRole::legacy), x, Access::write).empty());
  CHECK(program.access(*stream(*fresh, "blocking", false), x, Access::write).empty());
}

TEST(a_blocking_stream_that_is_gone_still_came_first) {
  Program program;
  const auto legacy = device().default_stream(StreamRole::legacy);
  const auto x = block();
  auto a = blocking();
  program.access(*a, x, Access::write);
  const Moment moment = x->uses(Access::read, {0, 64})[0].when;
  device().legacy_lanes().leave(*a);
  Ordering(*legacy, program.task->lane).begin();
  CHECK(legacy->lane().past().covers(moment));
}

TEST(streams_that_come_and_go_leave_nothing) {
  constexpr int operations_of_each = check::sanitized ? 10 : 300;
  Program program;
  const auto x = block();
  std::size_t most = 0;
  for (int i = 0; i < 10'000; ++i) {
    const auto a = i % 2 ? stream(device()) : blocking();
    for (int k = 0; k < operations_of_each; ++k) program.access(*a, x, k % 3 ? Access::read : Access::write);
    most = std::max(most, a->lane().past().clock.size());
    null_device().take_calls();  // which the null device keeps
  }
  CHECK(x->uses(Access::write, {0, 64}).size() <= 2);
  CHECK(most < 10);
}

TEST_IN(Setting, a_host_function_waits_for_nothing_that_comes_after_it) {
  const Gate gate(*a);
  Program function;
  function.task->lane.follow(a->lane().past());
  function.task->call = a->lane().advance();
  program.access(*a, x, Access::write);
  b->lane().follow(a->lane().past());
  program.access(*b, x, Access::write);
  const std::uint64_t before = added_waits();
  const Touch touch{x.get(), 0, 64, nullptr, 0, Access::read, false};
  Ordering ordering(*c, function.task->lane);
  ordering.begin();
  ordering.add(ordering.missing({&touch, 1}), *function.task);
  CHECK_EQUAL(added_waits(), before);
}

TEST_IN(Setting, what_comes_after_a_host_function_covers_nothing_for_it) {
  const Gate gate(*b);
  program.access(*b, x, Access::read);
  Program function;
  function.task->call = a->lane().advance();
  // Comes after both the function and the read, which stays, since this is for a part only.
  program.access(*a, x, Access::write, {0, 32});
  const Touch touch{x.get(), 0, 64, nullptr, 0, Access::write, false};
  Ordering ordering(*c, function.task->lane);
  ordering.begin();
  const std::vector<Race> missing = ordering.missing({&touch, 1});
  CHECK_EQUAL(missing.size(), std::size_t{2});
  const std::uint64_t before = added_waits();
  ordering.add(missing, *function.task);
  CHECK_EQUAL(added_waits(), before + 1);
}

TEST_IN(Setting, what_is_known_to_be_over_is_not_waited_for) {
  program.access(*a, x, Access::write);
  const std::uint64_t before = added_waits();
  CHECK_EQUAL(program.access(*b, x, Access::write).size(), std::size_t{1});
  CHECK_EQUAL(added_waits(), before);
}

TEST_IN(Setting, of_many_parts_that_become_one_entry_none_is_lost) {
  const Gate gate(*a);
  program.access(*b, x, Access::read, {63, 64});
  for (std::size_t i = 0; i < 60; ++i) program.access(*a, x, Access::write, {i, i + 1});
  CHECK(x->uses(Access::write, {0, 64}).size() < 60);
  for (std::size_t i = 0; i < 60; ++i) CHECK(!x->uses(Access::read, {i, i + 1}).empty());
}

TEST_IN(Setting, of_two_threads_on_a_stream_the_newer_point_stays) {
  x->accesses().note(*a, 2, Access::read, {0, 64});
  x->accesses().note(*a, 1, Access::write, {0, 64});
  const std::vector<Use> uses = x->uses(Access::read, {0, 64});
  CHECK_EQUAL(uses.size(), std::size_t{1});
  CHECK_EQUAL(uses[0].point, Point{2});
}

TEST_IN(Setting, of_two_threads_on_a_stream_who_waits_for_one_waits_for_all_that_count_before_it) {
  const Gate gate(*a);
  const Touch first{x.get(), 0, 64, nullptr, 0, Access::write, false};
  const Touch second{y.get(), 0, 64, nullptr, 0, Access::write, false};
  const Point point = call(*a, [] {});
  Ordering::note(*a, call(*a, [] {}), {&second, 1}, HazardMode::automatic, {}, a->lane().snapshot());
  Ordering::note(*a, point, {&first, 1}, HazardMode::automatic, {}, a->lane().snapshot());
  CHECK_EQUAL(program.access(*b, x, Access::read)[0].first.point, point + 1);
  CHECK(program.access(*b, y, Access::read).empty());
}

TEST_IN(Setting, an_open_access_is_over_when_it_ends) {
  const Touch touch{x.get(), 0, 64, nullptr, 0, Access::write, false};
  const auto open = make_ref<HostAccess>(program.task, touch, Site{}, true);
  Ordering ordering(*a, program.task->lane);
  ordering.begin();
  const std::vector<Race> missing = ordering.missing({&touch, 1});
  CHECK_EQUAL(missing.size(), std::size_t{1});
  CHECK(program.task->has_open(missing[0].first));
  open->end();
  ordering.begin();
  CHECK(ordering.missing({&touch, 1}).empty());
}

TEST_IN(Setting, of_open_accesses_one_after_the_other_the_last_is_remembered) {
  for (int i = 0; i < 3; ++i) {
    make_ref<HostAccess>(program.task, Touch{x.get(), 0, 64, nullptr, 0, Access::read, false}, Site{}, true)->end();
  }
  CHECK_EQUAL(x->conflicts(Lane().past(), nullptr, Access::write, {0, 64}).size(), std::size_t{1});
}

TEST_IN(Setting, what_happened_unnoticed_is_waited_for) {
  const Gate gate(*a);
  const Touch touch{x.get(), 0, 64, nullptr, 0, Access::write, false};
  Ordering::note(*a, call(*a, [] {}), {&touch, 1}, HazardMode::off, {}, nullptr);
  b->lane().follow(a->lane().past());  // nothing is known of it
  const std::uint64_t before = added_waits();
  CHECK_EQUAL(program.access(*b, x, Access::read).size(), std::size_t{1});
  CHECK_EQUAL(added_waits(), before + 1);
}

TEST_IN(Setting, a_stream_does_not_wait_for_what_it_did_unnoticed) {
  const Gate gates[] = {Gate(*a), Gate(*b)};  // what is over is forgotten
  const Touch touch{x.get(), 0, 64, nullptr, 0, Access::read, false};
  for (const auto& each : {a, b}) Ordering::note(*each, call(*each, [] {}), {&touch, 1}, HazardMode::off, {}, nullptr);
  const std::vector<Race> missing = program.access(*a, x, Access::write);
  CHECK_EQUAL(missing.size(), std::size_t{1});
  CHECK(missing[0].first.stream == b);
}

TEST_IN(Setting, records_of_events_keep_what_came_before) {
  const Gate gate(*a);
  Event event(device(), {});
  program.access(*a, x, Access::write);
  event.record(*a, &program.task->lane);
  program.access(*a, y, Access::write);
  event.wait(*b);
  CHECK(program.access(*b, x, Access::read).empty());
  CHECK_EQUAL(program.access(*b, y, Access::read).size(), std::size_t{1});
}

TEST(what_one_stream_notes_in_place_is_what_it_notes_in_general) {
  std::mt19937 random(1);
  const auto below = [&random](std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(random);
  };
  for (int round = 0; round < 200; ++round) {
    const auto a = stream(device());
    const auto x = block();
    const Lane other;
    History in_place;
    History general;
    Moment when;
    for (Point point = 1; point < 40; ++point) {
      if (below(8) == 0) a->lane().follow(stream(device())->lane().past());
      a->lane().advance(when, a->lane().snapshot());
      const std::size_t low = below(4);
      const Touch touch{x.get(), low, low + below(5 - low), nullptr, 0, static_cast<Access>(1 + below(3)), false};
      const Noted operation{*a, point, &when, {}, false};
      const Use use{a, point, touch.access, false, false, when, touch.footprint()};
      if (!in_place.repeat(touch, operation) && !in_place.renew(touch, operation)) in_place.note(use);
      general.note(use);
      for (const Access access : {Access::read, Access::write}) {
        const std::size_t first = below(4);
        const Footprint where{first, first + 1};
        const std::vector<Use> found = in_place.conflicts(other.past(), nullptr, access, where);
        const std::vector<Use> wanted = general.conflicts(other.past(), nullptr, access, where);
        CHECK_EQUAL(found.size(), wanted.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
          CHECK_EQUAL(found[i].point, wanted[i].point);
          CHECK_EQUAL(found[i].when.count, wanted[i].when.count);
          CHECK(found[i].access == wanted[i].access && found[i].where.bytes() == wanted[i].where.bytes());
        }
      }
    }
  }
}

TEST(of_two_threads_on_a_stream_the_newest_operation_is_remembered) {
  const auto a = stream(device());
  for (const std::size_t bytes : {std::size_t{32}, std::size_t{64}}) {
    const auto x = block();
    Moment when;
    for (const Point point : {Point{2}, Point{1}}) {  // the later one noted first
      a->lane().advance(when, a->lane().snapshot());
      const Touch touch{x.get(), 0, point == 1 ? bytes : 32, nullptr, 0, Access::write, false};
      x->accesses().note(touch, {*a, point, &when, {}, false});
    }
    const std::vector<Use> uses = x->uses(Access::read, {0, 64});
    CHECK_EQUAL(uses.size(), std::size_t{1});
    CHECK_EQUAL(uses[0].point, Point{2});
  }
}

TEST(a_strided_view_and_its_range_are_not_the_same_access) {
  const auto a = stream(device());
  Layout layout;  // every other byte of [0, 3)
  layout.ndim = 1;
  layout.shape[0] = layout.strides[0] = 2;
  for (const bool strided_first : {false, true}) {
    const auto x = block();
    Moment when;
    for (const bool strided : {strided_first, !strided_first}) {
      a->lane().advance(when, a->lane().snapshot());
      const Touch touch{x.get(), 0, 3, strided ? &layout : nullptr, 0, Access::read, false};
      x->accesses().note(touch, {*a, when.count, &when, {}, false});
    }
    CHECK_EQUAL(x->conflicts(Lane().past(), nullptr, Access::write, {1, 2}).size(), std::size_t{1});
    const std::vector<Use> uses = x->uses(Access::write, {0, 1});
    CHECK_EQUAL(uses.size(), strided_first ? std::size_t{1} : std::size_t{2});
  }
}

TEST_IN(Setting, a_stream_used_again_learns_what_its_first_use_had_waited_for) {
  const Gate gate(*a);
  program.access(*a, x, Access::write);
  for (int use = 0; use < 2; ++use) {
    Ordering(*b, program.task->lane).wait(*a);
    CHECK(program.access(*b, x, Access::read).empty());
    device().legacy_lanes().leave(*b);
  }
}

TEST_IN(Setting, a_stream_used_again_learns_what_its_task_had_told_it) {
  program.task->lane.follow(a->lane().advance());
  const Moment known = c->lane().advance();
  program.task->lane.follow(known);
  for (int use = 0; use < 2; ++use) {
    Ordering(*b, program.task->lane).begin();
    CHECK(b->lane().past().covers(known));
    device().legacy_lanes().leave(*b);
    CHECK(!b->lane().past().covers(known));
  }
}

TEST_IN(Setting, a_stream_used_again_comes_after_the_legacy_stream) {
  const auto legacy = device().default_stream(StreamRole::legacy);
  const auto blocked = blocking();
  program.access(*legacy, x, Access::write);
  const Moment before = x->uses(Access::read, {0, 64})[0].when;
  const Ref<HostTask> other = make_ref<HostTask>();  // which knows nothing of the legacy stream
  for (int use = 0; use < 2; ++use) {
    Ordering(*blocked, other->lane).begin();
    CHECK(blocked->lane().past().covers(before));
    device().legacy_lanes().leave(*blocked);
  }
}

TEST_IN(Setting, who_waits_for_the_legacy_stream_waits_for_the_blocking_ones) {
  const auto legacy = device().default_stream(StreamRole::legacy);
  const auto blocked = blocking();
  program.access(*blocked, x, Access::write);
  const Moment moment = x->uses(Access::read, {0, 64})[0].when;
  CHECK(past_of(*legacy).covers(moment));
}

TEST_IN(Setting, who_finds_the_legacy_stream_empty_again_learns_of_the_blocking_ones) {
  const auto legacy = device().default_stream(StreamRole::legacy);
  const auto blocked = blocking();
  program.access(*legacy, y, Access::write);
  const Observation first = observation_of(*legacy, *program.task);
  program.task->observe(first.past, first.version);
  Program another;
  another.access(*blocked, x, Access::write);
  const Moment moment = x->uses(Access::read, {0, 64})[0].when;
  CHECK(observation_of(*legacy, *program.task).past.covers(moment));
}

TEST_IN(Setting, who_waits_again_learns_what_is_new) {
  const Gate gate(*a);
  for (int i = 0; i < 3; ++i) {
    program.access(*a, x, Access::write);
    for (int again = 0; again < 2; ++again) Ordering(*b, program.task->lane).wait(*a);
    CHECK(program.access(*b, x, Access::read).empty());
    CHECK_EQUAL(program.access(*a, x, Access::write).size(), std::size_t{1});
  }
}

}  // namespace
}  // namespace anabranch
