// What follows from an operation that fails.
#include <chrono>

#include "contract.hpp"

namespace anabranch::contract {
namespace {

using namespace check;
using namespace std::chrono_literals;

TEST(later_work_of_a_failed_stream_does_not_run) {
  const Log log;
  const auto a = stream(device());
  const Point before = check::log(*a, log, "before");
  const Point broken = fail(*a, "broken");
  const Point after = check::log(*a, log, "after");
  CHECK_EQUAL(failure_at(*a, after), "broken");
  CHECK_EQUAL(failure_at(*a, broken), "broken");
  CHECK_EQUAL(failure_at(*a, before), "");
  CHECK(log.lines() == (Lines{"before", "no after"}));
  CHECK(device().query(*a, before));
  CHECK_THROWS(AsyncError, device().query(*a, broken));
  CHECK_THROWS(AsyncError, device().query(*a, after));
}

TEST(a_failed_stream_stays_failed) {
  const Log log;
  const auto a = stream(device());
  CHECK_EQUAL(failure_at(*a, fail(*a, "first")), "first");
  fail(*a, "second");
  CHECK_EQUAL(failure_at(*a, check::log(*a, log, "a")), "first");
  CHECK(log.lines() == Lines{"no a"});
}

TEST(work_behind_a_gate_is_skipped_by_a_failure) {
  const Log log;
  const auto a = stream(device());
  Gate gate(*a);
  fail(*a, "broken");
  const Gate never_opened(*a);
  check::log(*a, log, "a");
  CHECK(!device().query(*a, a->issued()));
  gate.open();
  CHECK_EQUAL(failure_at(*a, a->issued()), "broken");
  CHECK(log.lines() == Lines{"no a"});
}

TEST(a_waiting_stream_meets_the_same_failure) {
  const Log log;
  const auto a = stream(instance().first);
  const auto b = stream(instance().first);
  const auto c = stream(instance().second);
  Gate gate(*a);
  fail(*a, "broken");
  instance().first.wait(*b, *a, a->issued());
  check::log(*b, log, "b");
  instance().second.wait(*c, *b, b->issued());
  check::log(*c, log, "c");
  gate.open();
  CHECK_EQUAL(failure_at(*c, c->issued()), "broken");
  CHECK_EQUAL(failure_at(*b, b->issued()), "broken");
  CHECK(log.lines() == (Lines{"no b", "no c"}) || log.lines() == (Lines{"no c", "no b"}));
  Ref<Failure> met[2];
  for (int i = 0; i < 2; ++i) {
    Stream& stream = i == 0 ? *a : *c;
    try {
      stream.backend().query(stream, stream.issued());
    } catch (const AsyncError& error) {
      met[i] = error.failure();
    }
  }
  CHECK(met[0] && met[0] == met[1]);
}

TEST(a_failure_that_was_told_settles_a_stream_that_nobody_can_ask) {
  const auto a = stream(device());
  const auto b = stream(device());
  Gate gate(*b);
  fail(*a, "broken");
  device().wait(*b, *a, a->issued());
  const Point last = b->issued();
  CHECK_THROWS(AsyncError, a->settle(a->issued(), 1s));
  CHECK(!b->settle(last, 0s));
  try {
    finish(*a);
  } catch (const AsyncError& error) {
    error.failure()->note_told();
  }
  CHECK(a->settle(a->issued(), 1s));
  // Its wait has not met the failure yet.
  CHECK(!b->settle(last, 0s));
  gate.open();
  CHECK(b->settle(last, 10s));
  b->add_handle();
  CHECK_THROWS(AsyncError, b->settle(last, 10s));
  b->remove_handle();
}

TEST(a_failure_reaches_those_who_wait_later) {
  const auto a = stream(device());
  const auto b = stream(device());
  CHECK_EQUAL(failure_at(*a, fail(*a, "broken")), "broken");
  device().wait(*b, *a, a->issued());
  CHECK_EQUAL(failure_at(*b, b->issued()), "broken");
}

TEST(a_failure_does_not_reach_those_who_wait_for_earlier_points) {
  const Log log;
  const auto a = stream(device());
  const auto b = stream(device());
  const auto c = stream(device());
  const Point before = check::log(*a, log, "a");
  Gate gate(*a);
  const Point broken = fail(*a, "broken");
  device().wait(*b, *a, before);
  finish(*b, check::log(*b, log, "b"));
  device().wait(*b, *a, gate.point());
  gate.open();
  CHECK_EQUAL(failure_at(*a, broken), "broken");
  device().wait(*c, *a, gate.point());
  finish(*b);
  finish(*c, check::log(*c, log, "c"));
  CHECK(log.lines() == (Lines{"a", "b", "c"}));
}

TEST(an_event_tells_whether_the_work_before_it_failed) {
  const auto a = stream(device());
  Event before(device(), {});
  Event after(device(), {});
  before.record(*a);
  fail(*a, "broken");
  after.record(*a);
  CHECK_EQUAL(failure_at(*a, a->issued()), "broken");
  CHECK(before.query());
  CHECK_THROWS(AsyncError, after.query());
}

TEST(a_pending_may_fail_where_it_is_reached) {
  const auto a = stream(device());
  const auto pending = make_ref<HostOperation>();
  const Point point = device().suspend(*a, pending);
  CHECK(!device().query(*a, point));
  pending->complete(make_ref<Failure>("broken"));
  pending->complete();
  CHECK_EQUAL(failure_at(*a, point), "broken");
}

TEST(a_failure_is_kept_as_long_as_it_can_be_met) {
  static std::atomic<int> released;
  released = 0;
  auto a = stream(device());
  auto b = stream(device());
  {
    int payload = 0;
    const auto pending = make_ref<HostOperation>();
    pending->complete(make_ref<Failure>("broken", &payload, [](void*) noexcept { ++released; }));
    device().wait(*b, *a, device().suspend(*a, pending));
    CHECK_EQUAL(failure_at(*b, b->issued()), "broken");
  }
  a.reset();
  CHECK_EQUAL(released.load(), 0);
  b.reset();
  CHECK(eventually([] {
    device().unraised().take();  // what waits for the device may still meet it, once for each stream that is gone
    return released == 1;
  }));
}

}  // namespace
}  // namespace anabranch::contract
