// Streams as chains of tasks on a pool of workers.
#include <latch>
#include <thread>

#include "device.hpp"
#include "threads.hpp"

namespace anabranch::cpu {
namespace {

using namespace check;

TEST(waiting_streams_take_no_thread) {
  const auto before = count_threads();
  CpuBackend& device = make_device(2);
  const auto first = stream(device);
  Gate gate(*first);
  Event event(device, {});
  event.record(*first);
  std::atomic<int> run{0};
  std::vector<Ref<Stream>> waiting;
  for (int i = 0; i < 10'000; ++i) {
    waiting.push_back(stream(device));
    event.wait(*waiting.back());
    call(*waiting.back(), [&run] { ++run; });
  }
  const auto last = stream(device);
  finish(*last, call(*last, [] {}));
  CHECK_EQUAL(run.load(), 0);
  CHECK_EQUAL(count_threads(), before + 2);
  gate.open();
  for (const auto& each : waiting) finish(*each);
  CHECK_EQUAL(run.load(), 10'000);
  CHECK_EQUAL(count_threads(), before + 2);
}

TEST(the_end_of_a_function_starts_the_next_on_the_same_thread) {
  struct Function final : HostOperation {
    bool calls() const noexcept override { return true; }
    void start() noexcept override { thread = std::this_thread::get_id(); }
    std::atomic<std::thread::id> thread{};
  };
  CpuBackend& device = make_device(2);
  const auto s = stream(device);
  const auto first = make_ref<Function>(), second = make_ref<Function>(), third = make_ref<Function>();
  device.suspend(*s, first);
  device.suspend(*s, second);
  // One that is over before the stream comes to it, with work behind it.
  const auto over = make_ref<HostOperation>();
  over->complete();
  device.suspend(*s, over);
  std::atomic<int> run{0};
  for (int i = 0; i < 3; ++i) call(*s, [&run] { ++run; });
  device.suspend(*s, third);
  first->complete();
  CHECK(second->thread.load() == std::this_thread::get_id());
  CHECK_EQUAL(run.load(), 0);
  second->complete();
  CHECK(eventually([&] { return third->thread.load() != std::thread::id(); }));
  CHECK_EQUAL(run.load(), 3);
  third->complete();
  finish(*s);
}

TEST(what_only_hands_over_wakes_no_worker_in_an_idle_stream) {
  struct Noted final : HostOperation {
    void start() noexcept override { thread = std::this_thread::get_id(); }
    std::atomic<std::thread::id> thread{};
  };
  const auto before = count_threads();
  CpuBackend& device = make_device(2);
  const auto s = stream(device);
  for (int i = 0; i < 3; ++i) {
    const auto pending = make_ref<Noted>();
    const Point point = device.suspend(*s, pending);
    CHECK(pending->thread.load() == std::this_thread::get_id());
    CHECK(!device.query(*s, point));
    pending->complete();
    CHECK(device.query(*s, point));
  }
  // It is over before it is enqueued.
  const auto over = make_ref<Noted>();
  over->complete();
  CHECK(device.query(*s, device.suspend(*s, over)));
  CHECK_EQUAL(count_threads(), before);
  // Behind other work, and with work behind it.
  Gate gate(*s);
  std::atomic<int> run{0};
  const auto behind = make_ref<Noted>();
  const Point point = device.suspend(*s, behind);
  call(*s, [&run] { ++run; });
  CHECK(behind->thread.load() == std::thread::id());
  gate.open();
  CHECK(eventually([&] { return behind->thread.load() != std::thread::id(); }));
  CHECK(!device.query(*s, point));
  behind->complete();
  finish(*s);
  CHECK_EQUAL(run.load(), 1);
}

TEST(long_chains_of_streams_run) {
  CpuBackend& device = make_device(2);
  std::vector<int> order;  // the waits keep the operations apart
  std::vector<Ref<Stream>> chain{stream(device)};
  Gate gate(*chain[0]);
  for (int i = 0; i < 10'000; ++i) {
    chain.push_back(stream(device));
    device.wait(*chain.back(), *chain[chain.size() - 2], chain[chain.size() - 2]->issued());
    call(*chain.back(), [&order, i] { order.push_back(i); });
  }
  const auto last = chain.back();
  chain.clear();
  gate.open();
  finish(*last);
  CHECK_EQUAL(order.size(), std::size_t{10'000});
  for (int i = 0; i < 10'000; ++i) CHECK_EQUAL(order[static_cast<std::size_t>(i)], i);
}

TEST(failures_pass_down_long_chains) {
  CpuBackend& device = make_device(2);
  std::vector<Ref<Stream>> chain{stream(device)};
  Gate gate(*chain[0]);
  fail(*chain[0], "broken");
  for (int i = 0; i < 10'000; ++i) {
    chain.push_back(stream(device));
    device.wait(*chain.back(), *chain[chain.size() - 2], chain[chain.size() - 2]->issued());
  }
  gate.open();
  CHECK_EQUAL(failure_at(*chain.back(), chain.back()->issued()), "broken");
}

TEST(a_million_operations_may_be_queued) {
  constexpr int operations = sanitized ? 100'000 : 1'000'000;
  CpuBackend& device = make_device(2);
  const auto a = stream(device);
  Gate gate(*a);
  std::int64_t count = 0;
  for (int i = 0; i < operations; ++i) {
    launch<std::int64_t>(*a, 1, [](std::int64_t, std::int64_t, std::int64_t& count) { ++count; }, count);
  }
  CHECK(!device.query(*a, gate.point()));
  gate.open();
  finish(*a);
  CHECK_EQUAL(count, operations);
  CHECK_EQUAL(a->activity().operations, std::uint64_t{operations} + 1);
}

// What the operations of one worker do: the first waits to be released, the others note who they were.
struct Turns {
  std::latch held{1};
  std::latch released{1};
  std::string order = {};

  static void hold(std::int64_t, std::int64_t, Turns& turns) {
    turns.held.count_down();
    turns.released.wait();
  }
  template <char who>
  static void note(std::int64_t, std::int64_t, Turns& turns) {
    turns.order += who;
  }
};

TEST(urgent_streams_run_before_others) {
  CpuBackend& device = make_device(1);
  const auto holder = stream(device);
  Turns turns;
  launch<Turns>(*holder, 1, &Turns::hold, turns);
  turns.held.wait();
  std::vector<Ref<Stream>> streams;
  const auto add = [&](int priority, auto* function) {
    streams.push_back(device.create_stream({.priority = priority}));
    launch<Turns>(*streams.back(), 1, function, turns);
  };
  add(0, &Turns::note<'a'>);
  add(0, &Turns::note<'b'>);
  add(-1, &Turns::note<'C'>);
  add(0, &Turns::note<'d'>);
  add(-1, &Turns::note<'E'>);
  turns.released.count_down();
  for (const auto& each : streams) finish(*each);
  CHECK_EQUAL(turns.order, "CEabd");
}

TEST(an_urgent_stream_goes_between_the_operations_of_others) {
  CpuBackend& device = make_device(1);
  const auto normal = stream(device);
  const auto urgent = device.create_stream({.priority = -1});
  Turns turns;
  launch<Turns>(*normal, 1, &Turns::hold, turns);
  for (int i = 0; i < 3; ++i) launch<Turns>(*normal, 1, &Turns::note<'n'>, turns);
  turns.held.wait();
  launch<Turns>(*urgent, 1, &Turns::note<'u'>, turns);
  turns.released.count_down();
  finish(*normal);
  CHECK_EQUAL(turns.order, "unnn");
}

TEST(streams_take_turns) {
  CpuBackend& device = make_device(1);
  const auto a = stream(device);
  const auto b = stream(device);
  Turns turns;
  launch<Turns>(*a, 1, &Turns::hold, turns);
  for (int i = 0; i < 1000; ++i) launch<Turns>(*a, 1, &Turns::note<'a'>, turns);
  turns.held.wait();
  for (int i = 0; i < 1000; ++i) launch<Turns>(*b, 1, &Turns::note<'b'>, turns);
  turns.released.count_down();
  finish(*a);
  finish(*b);
  CHECK_EQUAL(turns.order.size(), std::size_t{2000});
  CHECK(turns.order.find('b') < 500);
  CHECK(turns.order.find('a', turns.order.find('b')) < 1000);
}

TEST(a_stream_that_never_ends_lets_others_run) {
  CpuBackend& device = make_device(1);
  const auto endless = stream(device);
  const auto other = stream(device);
  std::atomic<bool> enough{false};
  std::atomic<int> rounds{0};
  // An operation that enqueues the next.
  struct Again {
    Stream& stream;
    std::atomic<bool>& enough;
    std::atomic<int>& rounds;
    void operator()() const {
      ++rounds;
      if (!enough) call(stream, Again{stream, enough, rounds});
    }
  };
  call(*endless, Again{*endless, enough, rounds});
  finish(*other, call(*other, [] {}));
  const int seen = rounds;
  CHECK(eventually([&] { return rounds > seen; }));
  enough = true;
  finish(*other);
  CHECK(eventually([&] { return device.query(*endless, endless->issued()); }));
}

TEST(a_dropped_stream_is_used_again) {
  CpuBackend& device = make_device(1);
  auto a = stream(device);
  const std::uintptr_t handle = a->handle();
  fail(*a, "broken");
  CHECK_EQUAL(failure_at(*a, a->issued()), "broken");
  Gate gate(*device.default_stream(StreamRole::legacy));
  a.reset();
  CHECK(eventually([&] {
    a = device.create_stream({.priority = -1, .non_blocking = false, .name = "again"});
    return a->handle() == handle;
  }));
  CHECK_EQUAL(a->name(), "again");
  CHECK_EQUAL(a->priority(), -1);
  CHECK_EQUAL(a->activity().operations, std::uint64_t{0});
  const Log log;
  check::log(*a, log, "a");
  gate.open();
  finish(*a);
  CHECK(log.lines() == Lines{"a"});
}

TEST(activity_counts_operations_and_leaves_waiting_out) {
  CpuBackend& device = make_device(2);
  const auto a = stream(device);
  const auto b = stream(device);
  Gate gate(*a);
  device.wait(*b, *a, gate.point());
  call(*b, [] {});
  const auto begin = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  gate.open();
  finish(*b);
  CHECK(std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(100));
  CHECK_EQUAL(b->activity().operations, std::uint64_t{2});
  CHECK(b->activity().busy_nanoseconds < 50'000'000);
}

TEST(device_of_many_workers_runs_streams_side_by_side) {
  CpuBackend& device = make_device(4);
  std::latch all_there(4);
  std::vector<Ref<Stream>> streams;
  for (int i = 0; i < 4; ++i) {
    streams.push_back(stream(device));
    launch<std::latch>(
        *streams.back(), 1, [](std::int64_t, std::int64_t, std::latch& latch) { latch.arrive_and_wait(); }, all_there);
  }
  for (const auto& each : streams) finish(*each);
}

}  // namespace
}  // namespace anabranch::cpu
