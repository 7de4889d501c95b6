// Streams, events and waits.
#include <chrono>
#include <thread>

#include "contract.hpp"

namespace anabranch::contract {
namespace {

using namespace check;
using namespace std::chrono_literals;

// A waiter that counts how often it is woken, and remembers the last failure.
class Bell final : public Waiter {
 public:
  void wake(const Ref<Failure>& failure) noexcept override {
    failure_ = failure;
    ++rung_;
  }
  int rung() const { return rung_; }
  const Ref<Failure>& failure() const { return failure_; }

 private:
  Ref<Failure> failure_;
  std::atomic<int> rung_{0};
};

TEST(operations_of_a_stream_run_in_order) {
  const Log log;
  const auto a = stream(device());
  Lines expected;
  for (int i = 0; i < 200; ++i) {
    expected.push_back(std::to_string(i));
    check::log(*a, log, expected.back());
  }
  finish(*a);
  CHECK(log.lines() == expected);
}

TEST(points_of_a_stream_rise) {
  const auto a = stream(device());
  const auto b = stream(device());
  const Point now = device().record(*a);
  CHECK_EQUAL(now, a->issued());
  const Log log;
  Point last = a->issued();
  for (int i = 0; i < 20; ++i) {
    const Gate gate(*b);
    for (const Point point : {check::log(*a, log, ""), device().wait(*a, *b, gate.point()), device().record(*a)}) {
      CHECK(point >= last);
      CHECK(point <= a->issued());
      last = point;
    }
  }
  CHECK(last >= 40);
}

TEST(the_frontier_is_what_the_stream_has_to_do) {
  const auto a = stream(device());
  const Log log;
  const Gate gate(*a);
  const Point point = check::log(*a, log, "a");
  const std::vector<Record> frontier = device().frontier(*a);
  CHECK_EQUAL(frontier.size(), std::size_t{1});
  CHECK(frontier[0].stream == a);
  CHECK_EQUAL(frontier[0].point, point);
  CHECK_EQUAL(a->issued(), point);
}

TEST(enqueuing_waits_for_nothing) {
  const Log log;
  const auto a = stream(device());
  Gate gate(*a);
  const Point point = check::log(*a, log, "a");
  CHECK(!device().query(*a, gate.point()));
  CHECK(!device().query(*a, point));
  CHECK(log.lines().empty());
  gate.open();
  finish(*a, point);
  CHECK(device().query(*a, point));
  CHECK(log.lines() == Lines{"a"});
}

TEST(streams_do_not_hold_each_other) {
  const auto a = stream(device());
  const auto b = stream(device());
  const Gate gate(*a);
  const Log log;
  finish(*b, check::log(*b, log, "b"));
  CHECK(log.lines() == Lines{"b"});
}

TEST(a_wait_holds_the_stream_until_the_point) {
  const Log log;
  const auto a = stream(device());
  const auto b = stream(device());
  Gate gate(*a);
  const Point point = check::log(*a, log, "a");
  device().wait(*b, *a, point);
  check::log(*b, log, "b");
  CHECK(!device().query(*b, b->issued()));
  gate.open();
  finish(*b);
  CHECK(log.lines() == (Lines{"a", "b"}));
}

TEST(a_wait_does_not_hold_longer_than_its_point) {
  const auto a = stream(device());
  const auto b = stream(device());
  const Log log;
  const Point point = check::log(*a, log, "a");
  const Gate gate(*a);
  device().wait(*b, *a, point);
  finish(*b, check::log(*b, log, "b"));
  CHECK(log.lines() == (Lines{"a", "b"}));
}

TEST(a_wait_for_its_own_stream_is_nothing) {
  const auto a = stream(device());
  const Log log;
  device().wait(*a, *a, check::log(*a, log, "a"));
  finish(*a);
}

TEST(two_devices_wait_for_each_other) {
  const Log log;
  const auto a = stream(instance().first);
  const auto b = stream(instance().second);
  Gate gate(*a);
  for (const char* round : {"1", "2", "3"}) {
    const Point there = check::log(*a, log, std::string("a") + round);
    instance().second.wait(*b, *a, there);
    const Point back = check::log(*b, log, std::string("b") + round);
    instance().first.wait(*a, *b, back);
  }
  gate.open();
  finish(*a);
  finish(*b);
  CHECK(log.lines() == (Lines{"a1", "b1", "a2", "b2", "a3", "b3"}));
}

TEST(an_event_never_recorded_is_complete) {
  const auto a = stream(device());
  const Event event(device(), {});
  CHECK(event.query());
  CHECK(!event.last().stream);
  event.wait(*a);
  finish(*a);
}

TEST(an_event_covers_what_came_before_it) {
  const Log log;
  const auto a = stream(device());
  const auto b = stream(device());
  Event event(device(), {});
  Gate first(*a);
  check::log(*a, log, "before");
  event.record(*a);
  const Gate second(*a);
  check::log(*a, log, "after");
  event.wait(*b);
  check::log(*b, log, "b");
  CHECK(!event.query());
  first.open();
  finish(*b);
  CHECK(event.query());
  CHECK(log.lines() == (Lines{"before", "b"}));
}

TEST(recording_again_does_not_move_earlier_waits) {
  const auto a = stream(device());
  const auto b = stream(device());
  const auto c = stream(device());
  const Log log;
  Event event(device(), {});
  Gate first(*a);
  event.record(*a);
  event.wait(*b);
  Gate second(*a);
  event.record(*a);
  event.wait(*c);
  check::log(*c, log, "c");
  first.open();
  finish(*b, check::log(*b, log, "b"));
  CHECK(!event.query());
  CHECK(log.lines() == Lines{"b"});
  second.open();
  finish(*c);
  CHECK(event.query());
  CHECK(log.lines() == (Lines{"b", "c"}));
}

TEST(an_event_outlives_its_stream) {
  Event event(device(), {});
  auto a = stream(device());
  Gate gate(*a);
  event.record(*a);
  a.reset();
  CHECK(!event.query());
  gate.open();
  const auto b = stream(device());
  event.wait(*b);
  finish(*b);
  CHECK(event.query());
}

TEST(an_event_of_another_device_is_an_error) {
  const auto a = stream(instance().first);
  const Point issued = a->issued();
  Event event(instance().second, {});
  try {
    event.record(*a);
    CHECK(!"recorded");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::device);
  }
  CHECK(!event.last().stream);
  CHECK_EQUAL(a->issued(), issued);
}

TEST(an_event_may_be_waited_for_on_another_device) {
  const Log log;
  const auto a = stream(instance().first);
  const auto b = stream(instance().second);
  Event event(instance().first, {});
  Gate gate(*a);
  check::log(*a, log, "a");
  event.record(*a);
  event.wait(*b);
  check::log(*b, log, "b");
  gate.open();
  finish(*b);
  CHECK(log.lines() == (Lines{"a", "b"}));
}

TEST(stamps_are_taken_in_stream_order) {
  const auto a = stream(device());
  Event begin(device(), {.timing = true});
  Event end(device(), {.timing = true});
  Gate gate(*a);
  begin.record(*a);
  const Log log;
  check::log(*a, log, "");
  end.record(*a);
  CHECK(!begin.query());
  gate.open();
  finish(*a);
  CHECK(begin.elapsed(end).value() >= 0);
  CHECK(!Event(device(), {}).last().marker);
}

TEST(synchronize_comes_back_after_its_timeout) {
  const auto a = stream(device());
  Gate gate(*a);
  CHECK(!device().synchronize(*a, gate.point(), 0ns));
  const auto begin = std::chrono::steady_clock::now();
  CHECK(!device().synchronize(*a, gate.point(), 5ms));
  CHECK(std::chrono::steady_clock::now() - begin >= 5ms);
  gate.open();
  CHECK(device().synchronize(*a, gate.point(), 1min));
}

TEST(synchronize_may_wait_for_ever) {
  const auto a = stream(device());
  const auto b = stream(device());
  Gate gate(*a);
  std::atomic<bool> waiting{false};
  std::thread opener([&] {
    waiting.wait(false);
    gate.open();
  });
  waiting = true;
  waiting.notify_one();
  const bool reached = device().synchronize(*a, gate.point(), std::chrono::nanoseconds::max());
  opener.join();
  CHECK(reached);
}

TEST(synchronize_waits_for_no_later_work) {
  const auto a = stream(device());
  const Log log;
  const Point point = check::log(*a, log, "a");
  const Gate gate(*a);
  finish(*a, point);
}

TEST(notify_wakes_once) {
  const auto a = stream(device());
  Gate gate(*a);
  Bell bell;
  CHECK(device().notify(*a, gate.point(), bell));
  CHECK_EQUAL(bell.rung(), 0);
  gate.open();
  CHECK(eventually([&] { return bell.rung() > 0; }));
  finish(*a, fail(*a, "later") - 1);
  CHECK_EQUAL(bell.rung(), 1);
  CHECK(!bell.failure());
  CHECK(!device().notify(*a, gate.point(), bell));
  CHECK_EQUAL(bell.rung(), 1);
}

TEST(notify_wakes_each_in_the_order_of_the_points) {
  constexpr std::size_t each = 100;
  const auto a = stream(device());
  const auto b = stream(device());
  Gate gate_a(*a);
  Gate gate_b(*b);
  std::vector<Bell> of_a(each);
  std::vector<Bell> of_b(each);
  for (std::size_t i = 0; i < each; ++i) {
    CHECK(device().notify(*a,
                          call(*a,
                               [&of_a, i] {
                                 for (std::size_t j = i; j < each; ++j) CHECK_EQUAL(of_a[j].rung(), 0);
                               }),
                          of_a[i]));
    CHECK(device().notify(*b, call(*b, [] {}), of_b[i]));
  }
  Gate second(*a);
  Bell last;
  CHECK(device().notify(*a, call(*a, [] {}), last));
  gate_b.open();
  CHECK(eventually([&] { return std::all_of(of_b.begin(), of_b.end(), [](Bell& bell) { return bell.rung() == 1; }); }));
  for (Bell& bell : of_a) CHECK_EQUAL(bell.rung(), 0);
  gate_a.open();
  CHECK(eventually([&] { return std::all_of(of_a.begin(), of_a.end(), [](Bell& bell) { return bell.rung() == 1; }); }));
  CHECK_EQUAL(last.rung(), 0);
  second.open();
  CHECK(eventually([&] { return last.rung() == 1; }));
}

TEST(notify_tells_of_a_failure) {
  const auto a = stream(device());
  Gate gate(*a);
  const Point point = fail(*a, "broken");
  Bell bell;
  CHECK(device().notify(*a, point, bell));
  gate.open();
  CHECK(eventually([&] { return bell.rung() > 0; }));
  CHECK_EQUAL(bell.failure()->message(), "broken");
}

TEST(a_pending_may_be_completed_before_it_is_reached) {
  const auto a = stream(device());
  Gate first(*a);
  Gate second(*a);
  second.open();
  CHECK(!device().query(*a, second.point()));
  first.open();
  finish(*a);
}

TEST(a_pending_is_started_when_it_is_reached) {
  class Started final : public HostOperation {
   public:
    void start() noexcept override { started = true; }
    std::atomic<bool> started{false};
  };
  const auto a = stream(device());
  Gate gate(*a);
  const auto pending = make_ref<Started>();
  const Point point = device().suspend(*a, pending);
  CHECK(!pending->started);
  gate.open();
  CHECK(eventually([&] { return pending->started.load(); }));
  CHECK(!device().query(*a, point));
  pending->complete();
  pending->complete(make_ref<Failure>("too late"));
  finish(*a, point);
}

}  // namespace
}  // namespace anabranch::contract
