// The order between the legacy stream and the blocking streams of its device. Each test has a device of its own, whose
// legacy stream nobody else uses.
#include <thread>

#include "contract.hpp"

namespace anabranch::contract {
namespace {

using namespace check;

struct Device {
  Device() {
    need(instance().legacy_order, "has no order between the legacy stream and others");
    blocking = stream(backend, "blocking", false);
    other = stream(backend, "other", false);
    free = stream(backend, "free");
  }

  Backend& backend = instance().make(std::size_t{1} << 20);
  Ref<Stream> legacy = backend.default_stream(StreamRole::legacy);
  Ref<Stream> own = backend.default_stream(StreamRole::per_thread);
  Ref<Stream> blocking, other, free;
  Log log;

  Point add(const Ref<Stream>& stream) { return check::log(*stream, log, stream->name()); }
  bool over(const Ref<Stream>& stream) { return backend.query(*stream, stream->issued()); }
  // Gives everything that may run the time to do so.
  void turn() {
    const auto aside = stream(backend);
    for (int i = 0; i < 20; ++i) finish(*aside, check::call(*aside, [] {}));
  }
};

TEST(legacy_work_comes_after_blocking_streams) {
  Device device;
  Gate gate(*device.blocking);
  device.add(device.blocking);
  device.add(device.legacy);
  device.turn();
  CHECK(device.log.lines().empty());
  gate.open();
  finish(*device.legacy);
  CHECK(device.log.lines() == (Lines{"blocking", "legacy"}));
}

TEST(blocking_streams_come_after_legacy_work) {
  Device device;
  Gate gate(*device.legacy);
  device.add(device.legacy);
  device.add(device.blocking);
  device.turn();
  CHECK(device.log.lines().empty());
  gate.open();
  finish(*device.blocking);
  CHECK(device.log.lines() == (Lines{"legacy", "blocking"}));
}

TEST(non_blocking_streams_are_in_no_order_with_the_legacy_stream) {
  Device device;
  {
    const Gate gate(*device.legacy);
    finish(*device.free, device.add(device.free));
  }
  finish(*device.legacy);
  const Gate gate(*device.free);
  device.add(device.free);
  finish(*device.legacy, device.add(device.legacy));
  CHECK(device.log.lines() == (Lines{"free", "legacy"}));
}

TEST(per_thread_streams_are_blocking_ones) {
  Device device;
  Gate before(*device.own);
  device.add(device.own);
  device.add(device.legacy);
  Gate between(*device.legacy);
  device.add(device.own);
  device.turn();
  CHECK(device.log.lines().empty());
  before.open();
  device.turn();
  CHECK(!device.over(device.own));
  between.open();
  finish(*device.own);
  CHECK(device.log.lines() == (Lines{"per-thread", "legacy", "per-thread"}));
}

TEST(per_thread_streams_of_two_threads_are_in_no_order) {
  Device device;
  const Gate gate(*device.own);
  std::thread([&device] {
    const auto own = device.backend.default_stream(StreamRole::per_thread);
    finish(*own, device.add(own));
  }).join();
  CHECK(device.log.lines() == Lines{"per-thread"});
}

TEST(blocking_streams_are_in_no_order_with_each_other) {
  Device device;
  const Gate gate(*device.blocking);
  finish(*device.other, device.add(device.other));
}

TEST(the_legacy_stream_orders_blocking_streams_with_each_other) {
  Device device;
  Gate gate(*device.blocking);
  device.add(device.blocking);
  device.add(device.legacy);
  device.add(device.other);
  device.turn();
  CHECK(device.log.lines().empty());
  gate.open();
  finish(*device.other);
  CHECK(device.log.lines() == (Lines{"blocking", "legacy", "other"}));
}

TEST(legacy_order_holds_round_after_round) {
  Device device;
  Lines expected;
  Gate gate(*device.blocking);
  for (int round = 0; round < 50; ++round) {
    for (const auto& stream : {device.blocking, device.legacy, device.other, device.legacy}) {
      device.add(stream);
      expected.push_back(stream->name());
    }
  }
  gate.open();
  finish(*device.legacy);
  CHECK(device.log.lines() == expected);
}

TEST(a_stream_new_to_the_legacy_order_joins_it) {
  Device device;
  device.add(device.blocking);
  device.add(device.legacy);
  Gate gate(*device.legacy);
  const auto late = stream(device.backend, "late", false);
  device.add(late);
  device.turn();
  CHECK(!device.over(late));
  gate.open();
  finish(*late);
  CHECK(device.log.lines() == (Lines{"blocking", "legacy", "late"}));
}

TEST(a_stream_in_the_place_of_another_joins_the_legacy_order) {
  Device device;
  for (int round = 0; round < 3; ++round) {
    finish(*device.blocking, check::call(*device.blocking, [] {}));
    device.blocking.reset();
    device.turn();
    device.blocking = stream(device.backend, "blocking", false);
    const Log log;
    Gate gate(*device.legacy);
    check::log(*device.legacy, log, "legacy");
    check::log(*device.blocking, log, "blocking");
    device.turn();
    CHECK(log.lines().empty());
    gate.open();
    finish(*device.blocking);
    CHECK(log.lines() == (Lines{"legacy", "blocking"}));
  }
}

TEST(legacy_work_comes_after_a_blocking_stream_that_was_dropped) {
  Device device;
  Gate gate(*device.blocking);
  device.add(device.blocking);
  device.blocking.reset();
  device.add(device.legacy);
  device.turn();
  CHECK(device.log.lines().empty());
  gate.open();
  finish(*device.legacy);
  CHECK(device.log.lines() == (Lines{"blocking", "legacy"}));
}

TEST(an_event_on_the_legacy_stream_covers_blocking_streams) {
  Device device;
  Event event(device.backend, {});
  Gate gate(*device.blocking);
  device.add(device.blocking);
  event.record(*device.legacy);
  CHECK(!event.query());
  event.wait(*device.free);
  device.add(device.free);
  device.turn();
  CHECK(!event.query());
  gate.open();
  finish(*device.free);
  CHECK(event.query());
  CHECK(device.log.lines() == (Lines{"blocking", "free"}));
}

TEST(an_event_on_a_blocking_stream_covers_the_legacy_stream) {
  Device device;
  Event event(device.backend, {.timing = true});
  Gate gate(*device.legacy);
  device.add(device.legacy);
  event.record(*device.blocking);
  device.turn();
  CHECK(!event.query());
  gate.open();
  finish(*device.blocking);
  CHECK(event.query());
}

TEST(an_event_on_the_legacy_stream_leaves_non_blocking_streams_out) {
  Device device;
  Event event(device.backend, {});
  const Gate gate(*device.free);
  event.record(*device.legacy);
  CHECK(eventually([&] { return event.query(); }));
}

TEST(the_frontier_of_the_legacy_stream_covers_blocking_streams) {
  Device device;
  const auto over = [&] {
    for (const Record& record : device.backend.frontier(*device.legacy)) {
      if (!device.backend.query(*record.stream, record.point)) return false;
    }
    return true;
  };
  const Gate aside(*device.free);
  CHECK(over());
  Gate gate(*device.blocking);
  CHECK(!over());
  // Looking is no action of the legacy stream's, which others would come after.
  finish(*device.other, device.add(device.other));
  gate.open();
  finish(*device.blocking);
  CHECK(over());
}

TEST(a_stream_may_wait_for_one_that_waits_for_the_legacy_stream) {
  Device device;
  Gate gate(*device.legacy);
  device.add(device.legacy);
  device.add(device.blocking);
  device.backend.wait(*device.legacy, *device.blocking, device.blocking->issued());
  device.add(device.legacy);
  device.backend.wait(*device.blocking, *device.legacy, device.legacy->issued());
  device.add(device.blocking);
  gate.open();
  finish(*device.blocking);
  CHECK(device.log.lines() == (Lines{"legacy", "blocking", "legacy", "blocking"}));
}

TEST(devices_have_legacy_streams_of_their_own) {
  Device device;
  const auto there = instance().second.default_stream(StreamRole::legacy);
  const Gate gate(*there);
  finish(*device.blocking, device.add(device.blocking));
  finish(*device.legacy, device.add(device.legacy));
}

TEST(a_failure_that_is_over_passes_through_the_legacy_order) {
  Device device;
  CHECK_EQUAL(failure_at(*device.blocking, fail(*device.blocking, "broken")), "broken");
  const Point recorded = device.backend.record(*device.legacy);
  CHECK_EQUAL(failure_at(*device.legacy, recorded), "broken");
  CHECK_EQUAL(failure_at(*device.other, device.backend.record(*device.other)), "broken");
}

TEST(a_failure_passes_through_the_legacy_order) {
  Device device;
  Gate gate(*device.blocking);
  fail(*device.blocking, "broken");
  device.add(device.legacy);
  device.add(device.other);
  device.add(device.free);
  gate.open();
  CHECK_EQUAL(failure_at(*device.legacy, device.legacy->issued()), "broken");
  CHECK_EQUAL(failure_at(*device.other, device.other->issued()), "broken");
  finish(*device.free);
}

}  // namespace
}  // namespace anabranch::contract
