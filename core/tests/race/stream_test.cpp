// Streams and events used by many threads at once. To be run under ThreadSanitizer.
#include <random>
#include <thread>

#include "cpu/device.hpp"
#include "threads.hpp"

namespace anabranch::cpu {
namespace {

using namespace check;

TEST(streams_are_created_used_and_dropped) {
  CpuBackend* const devices[] = {&make_device(2), &make_device(2)};
  std::atomic<int> run{0};
  in_threads(4, [&](int thread) {
    std::mt19937 random(static_cast<unsigned>(thread));
    for (int round = 0; round < 300; ++round) {
      CpuBackend& device = *devices[random() % 2];
      auto a = device.create_stream({.priority = -static_cast<int>(random() % 2), .non_blocking = random() % 2 == 0});
      auto b = stream(*devices[random() % 2]);
      call(*a, [&run] { ++run; });
      b->backend().wait(*b, *a, a->issued());
      call(*b, [&run] { ++run; });
      if (random() % 4 == 0) finish(*b);
      if (random() % 4 == 0) device.find_stream(a->handle());
      if (random() % 8 == 0) device.streams();
      (random() % 2 ? a : b).reset();
    }
  });
  CHECK(eventually([&] { return run == 4 * 300 * 2; }));
}

TEST(one_stream_is_fed_by_many_threads) {
  CpuBackend& device = make_device(2);
  const auto a = stream(device);
  // Touched by operations of one stream only, and so never at the same time.
  std::vector<int> last(4, -1);
  bool in_order = true;
  in_threads(4, [&](int thread) {
    Point point = 0;
    for (int i = 0; i < 1000; ++i) {
      const Point next = call(*a, [&, thread, i] {
        int& before = last[static_cast<std::size_t>(thread)];
        in_order &= before == i - 1;
        before = i;
      });
      if (next <= point) std::abort();
      point = next;
    }
  });
  finish(*a);
  CHECK(in_order);
  CHECK(last == std::vector<int>(4, 999));
}

TEST(one_event_is_recorded_and_waited_for_by_many_threads) {
  CpuBackend& device = make_device(2);
  Event event(device, {.timing = true});
  in_threads(4, [&](int) {
    for (int round = 0; round < 300; ++round) {
      const auto a = stream(device);
      call(*a, [] {});
      event.record(*a);
      event.wait(*stream(device));
      event.query();
      const Record record = event.last();
      finish(*record.stream, record.point);
      if (static_cast<const Timestamp&>(*record.marker).nanoseconds == 0) std::abort();
    }
  });
  CHECK(event.query());
}

TEST(events_are_measured_both_ways_while_they_are_recorded) {
  CpuBackend& device = make_device(2);
  Event first(device, {.timing = true});
  Event second(device, {.timing = true});
  const auto a = stream(device);
  for (Event* event : {&first, &second}) event->record(*a);
  in_threads(4, [&](int thread) {
    const bool forward = thread % 2 == 0;
    Event& begin = forward ? first : second;
    const Event& end = forward ? second : first;
    for (int round = 0; round < 1000; ++round) {
      begin.elapsed(end);
      if (round % 8 == 0) begin.record(*a);
      if (begin.elapsed(begin).value_or(0) != 0) std::abort();
    }
  });
  finish(*a);
  CHECK(first.elapsed(second).has_value());
}

TEST(streams_hand_values_to_each_other) {
  CpuBackend& device = make_device(3);
  constexpr int length = 16;
  // What a stage writes the next one reads: only the waits keep them apart.
  for (int round = 0; round < 40; ++round) {
    std::vector<int> values(length + 1);
    std::vector<Ref<Stream>> stages;
    for (int i = 0; i < length; ++i) stages.push_back(stream(device));
    for (std::size_t i = 0; i < length; ++i) {
      if (i > 0) device.wait(*stages[i], *stages[i - 1], stages[i - 1]->issued());
      call(*stages[i], [&values, i] { values[i + 1] = values[i] + 1; });
    }
    finish(*stages.back());
    CHECK_EQUAL(values[length], length);
  }
}

TEST(hosts_wait_with_and_without_time_limits) {
  CpuBackend& device = make_device(2);
  const auto a = stream(device);
  for (int round = 0; round < 50; ++round) {
    Gate gate(*a);
    std::atomic<int> timed_out{0};
    std::thread opener([&] {
      eventually([&] { return timed_out >= 4; });
      gate.open();
    });
    in_threads(4, [&](int thread) {
      while (!device.synchronize(*a, gate.point(), std::chrono::microseconds(10 * thread))) ++timed_out;
    });
    opener.join();
  }
}

TEST(streams_are_dropped_while_others_wait_for_them) {
  CpuBackend& device = make_device(2);
  for (int round = 0; round < 100; ++round) {
    auto a = stream(device);
    Gate gate(*a);
    Event event(device, {});
    event.record(*a);
    std::thread waiter([record = event.last()] { finish(*record.stream, record.point); });
    std::thread opener([&gate] { gate.open(); });
    const auto b = stream(device);
    event.wait(*b);
    a.reset();
    finish(*b);
    waiter.join();
    opener.join();
  }
}

TEST(pendings_are_completed_while_they_are_reached) {
  CpuBackend& device = make_device(2);
  const auto a = stream(device);
  std::vector<Ref<HostOperation>> pendings;
  for (int i = 0; i < 2000; ++i) pendings.push_back(make_ref<HostOperation>());
  std::thread first([&] {
    for (const auto& pending : pendings) pending->complete();
  });
  std::thread second([&] {
    for (const auto& pending : pendings) pending->complete();
  });
  for (const auto& pending : pendings) device.suspend(*a, pending);
  finish(*a);
  first.join();
  second.join();
}

TEST(waiters_come_while_the_point_is_reached) {
  class Bell final : public Waiter {
   public:
    void wake(const Ref<Failure>&) noexcept override { ++rung; }
    std::atomic<int> rung{0};
  };
  CpuBackend& device = make_device(2);
  const auto a = stream(device);
  for (int round = 0; round < 10'000; ++round) {
    const Point point = call(*a, [] {});
    for (volatile int delay = round % 1000; delay > 0;) delay = delay - 1;
    Bell bell;
    const bool waits = device.notify(*a, point, bell);
    CHECK(eventually([&] { return device.query(*a, point) && bell.rung == (waits ? 1 : 0); }));
  }
}

TEST(failures_meet_waits) {
  CpuBackend& device = make_device(2);
  for (int round = 0; round < 100; ++round) {
    const auto a = stream(device);
    std::thread failing([&a] { fail(*a, "broken"); });
    const auto b = stream(device);
    for (int i = 0; i < 5; ++i) {
      device.wait(*b, *a, a->issued());
      call(*b, [] {});
    }
    failing.join();
    CHECK_EQUAL(failure_at(*a, a->issued()), "broken");
    device.wait(*b, *a, a->issued());
    CHECK_EQUAL(failure_at(*b, b->issued()), "broken");
  }
}

}  // namespace
}  // namespace anabranch::cpu
