// Replays among other work: queued, held, failing, urgent.
#include <latch>
#include <numeric>
#include <thread>

#include "draft.hpp"

namespace anabranch::cpu {
namespace {

using namespace check;

void increment(std::int64_t, std::int64_t, std::int64_t& count) { ++count; }

template <char letter>
void write(std::int64_t, std::int64_t, std::string& text) {
  text += letter;
}

TEST(thousands_of_replays_may_be_queued) {
  CpuBackend& device = make_device(2);
  const auto a = stream(device);
  Draft draft(device);
  std::int64_t count = 0;
  std::atomic<int> side{0};
  const auto first = draft.launch<std::int64_t>({}, &increment, count);
  Nodes both;
  for (int i = 0; i < 2; ++i) {
    both.push_back(draft.launch<std::atomic<int>>(
        {first}, [](std::int64_t, std::int64_t, std::atomic<int>& side) { ++side; }, side));
  }
  draft.launch<std::int64_t>(both, &increment, count);
  const auto instance = draft.instance();
  {
    const Gate gate(*a);
    for (int i = 0; i < 5'000; ++i) replay(*instance, *a);
    CHECK_EQUAL(count, 0);
  }
  finish(*a);
  CHECK_EQUAL(count, 10'000);
  CHECK_EQUAL(side.load(), 10'000);
}

TEST(replays_in_several_streams_come_one_after_the_other) {
  CpuBackend& device = make_device(3);
  CpuBackend& other = make_device(2);
  std::vector<Ref<Stream>> streams{stream(device), device.create_stream({.priority = -1}), stream(other)};
  Draft draft(device);
  std::int64_t count = 0;  // no two nodes run at the same time, or this is a race
  auto last = draft.launch<std::int64_t>({}, &increment, count);
  last = draft.add(NodeKind::kernel, {last}, kernel<std::int64_t>(1, &increment, count), &other);
  draft.add(NodeKind::kernel, {last}, kernel<std::int64_t>(1, &increment, count));
  const auto instance = draft.instance();
  for (std::size_t i = 0; i < 1'000; ++i) replay(*instance, *streams[i % streams.size()]);
  for (const auto& each : streams) finish(*each);
  CHECK_EQUAL(count, 3'000);
}

TEST(a_replay_keeps_the_works_it_was_launched_with) {
  CpuBackend& device = make_device(2);
  const auto a = stream(device);
  std::string text;
  Draft draft(device);
  const auto first = draft.launch<std::string>({}, &write<'a'>, text);
  draft.launch<std::string>({first}, &write<'b'>, text);
  const auto instance = draft.instance();
  draft.works.reset();
  {
    const Gate gate(*a);
    replay(*instance, *a);
    instance->set(1, kernel<std::string>(1, &write<'c'>, text));
    replay(*instance, *a);
    replay(*instance, *a);
    instance->set(0, kernel<std::string>(1, &write<'d'>, text));
    replay(*instance, *a);
  }
  finish(*a);
  CHECK_EQUAL(text, "abacacdc");
}

TEST(an_executable_may_be_dropped_while_replays_are_queued) {
  CpuBackend& device = make_device(2);
  const auto a = stream(device);
  std::int64_t count = 0;
  for (int round = 0; round < 200; ++round) {
    Draft draft(device);
    Nodes last;
    for (int i = 0; i < 10; ++i) last = {draft.launch<std::int64_t>(last, &increment, count)};
    Draft twice(device);
    twice.nest({twice.nest({}, draft)}, draft);
    const Gate gate(*a);
    auto executable = twice.ready();
    for (int i = 0; i < 3; ++i) executable->launch(*a, twice.works);
    executable.reset();
  }
  finish(*a);
  CHECK_EQUAL(count, 200 * 3 * 20);
}

TEST(a_host_function_holds_what_follows_and_no_worker) {
  CpuBackend& device = make_device(1);
  const auto a = stream(device);
  const auto b = stream(device);
  std::string text;
  Draft draft(device);
  std::vector<Ref<HostOperation>> made;
  std::latch reached(2);
  for (int i = 0; i < 2; ++i) {
    const auto held = draft.host({}, [&] {
      made.push_back(make_ref<HostOperation>());
      reached.count_down();
      return made.back();
    });
    draft.launch<std::string>({held}, &write<'a'>, text);
  }
  const Point point = draft.ready()->launch(*a, draft.works);
  launch<std::string>(*a, 1, &write<'b'>, text);
  reached.wait();
  std::string other;
  finish(*b, launch<std::string>(*b, 1, &write<'o'>, other));
  CHECK(!device.query(*a, point));
  made[1]->complete();
  finish(*b, launch<std::string>(*b, 1, &write<'o'>, other));
  CHECK(!device.query(*a, point));
  std::thread([&] { made[0]->complete(); }).join();
  finish(*a);
  CHECK_EQUAL(text, "aab");
}

TEST(nodes_do_not_run_on_the_thread_that_completes_a_host_function) {
  CpuBackend& device = make_device(2);
  const auto a = stream(device);
  Draft draft(device);
  const auto pending = make_ref<HostOperation>();
  std::atomic<bool> foreign{false};
  const auto here = std::this_thread::get_id();
  const auto held = draft.hold({}, pending);
  draft.call({held}, [&] { foreign = std::this_thread::get_id() == here; });
  const Point point = draft.ready()->launch(*a, draft.works);
  pending->complete();
  finish(*a, point);
  CHECK(!foreign);
}

TEST(a_host_function_that_fails_fails_the_stream) {
  for (const bool later : {false, true}) {
    for (const int workers : {1, 2}) {
      CpuBackend& device = make_device(workers);
      const auto a = stream(device);
      const Log log;
      std::string text;
      std::int32_t flag = 1;
      Draft within(device);
      within.log({}, log, "within");
      Draft pass(device);
      pass.call({}, [&] { flag = 0, log.add("pass"); }, [&] { log.add("no pass"); });
      Draft draft(device);
      const auto before = draft.log({}, log, "before");
      auto pending = make_ref<HostOperation>();
      const auto failing = draft.host({before}, [&pending] { return pending; });
      const auto after = draft.launch<std::string>({failing}, &write<'x'>, text);
      draft.log({draft.loop({draft.nest({after}, within)}, flag, pass)}, log, "after");
      if (!later) pending->complete(make_ref<Failure>("broken"));
      const auto executable = draft.ready();
      const Point first = executable->launch(*a, draft.works);
      const Point second = executable->launch(*a, draft.works);
      if (later) pending->complete(make_ref<Failure>("broken"));
      CHECK_EQUAL(failure_at(*a, first), "broken");
      CHECK_EQUAL(failure_at(*a, second), "broken");
      CHECK_EQUAL(text, "");
      CHECK(log.lines() == (Lines{"before", "no within", "no after", "no before", "no within", "no after"}));
      // The executable is none the worse for it.
      pending = make_ref<HostOperation>();
      pending->complete();
      const auto b = stream(device);
      finish(*b, executable->launch(*b, draft.works));
      CHECK_EQUAL(text, "x");
      const Lines lines = log.lines();
      CHECK(Lines(lines.end() - 4, lines.end()) == (Lines{"before", "within", "pass", "after"}));
    }
  }
}

TEST(nodes_that_run_when_another_fails_come_to_their_end) {
  CpuBackend& device = make_device(2);
  const auto a = stream(device);
  const Log log;
  Draft draft(device);
  const auto failing = make_ref<HostOperation>();
  std::latch running(1);
  std::latch failed(1);
  const auto other = draft.call({}, [&] {
    running.count_down();
    failed.wait();
    log.add("other");
  });
  draft.log({other, draft.hold({}, failing)}, log, "last");
  const Point point = draft.ready()->launch(*a, draft.works);
  running.wait();
  failing->complete(make_ref<Failure>("broken"));
  failed.count_down();
  CHECK_EQUAL(failure_at(*a, point), "broken");
  CHECK(log.lines() == (Lines{"other", "no last"}));
}

TEST(a_replay_that_a_failed_stream_skips_leaves_the_one_that_runs_alone) {
  CpuBackend& device = make_device(2);
  const auto a = stream(device);
  const auto b = stream(device);
  const Log log;
  const auto held = make_ref<HostOperation>();
  const auto failing = make_ref<HostOperation>();
  std::atomic<bool> begun{false};
  Draft draft(device);
  const auto next = draft.log({draft.hold({}, failing)}, log, "next");
  const auto other = draft.host({}, [&] { return begun = true, held; });
  draft.log({next, other}, log, "last");
  const auto instance = draft.instance();
  const Point point = replay(*instance, *a);
  CHECK(eventually([&] { return begun.load(); }));
  failing->complete(make_ref<Failure>("broken"));
  CHECK(eventually([&] { return log.lines() == Lines{"no next"}; }));
  CHECK_EQUAL(failure_at(*b, fail(*b, "failed before")), "failed before");
  CHECK_EQUAL(failure_at(*b, replay(*instance, *b)), "failed before");
  CHECK(log.lines() == (Lines{"no next", "no next", "no last"}));
  held->complete();
  CHECK_EQUAL(failure_at(*a, point), "broken");
  CHECK(log.lines() == (Lines{"no next", "no next", "no last", "no last"}));
}

TEST(urgent_replays_go_between_the_nodes_of_others) {
  CpuBackend& device = make_device(1);
  const auto normal = stream(device);
  const auto urgent = device.create_stream({.priority = -1});
  struct State {
    std::latch held{1};
    std::latch released{1};
    std::string text = {};
  } state;
  Draft slow(device);
  Nodes last = {slow.launch<State>(
      {},
      [](std::int64_t, std::int64_t, State& state) {
        state.held.count_down();
        state.released.wait();
      },
      state)};
  for (int i = 0; i < 3; ++i) last = {slow.launch<std::string>(last, &write<'n'>, state.text)};
  Draft fast(device);
  for (int i = 0; i < 3; ++i) fast.launch<std::string>({}, &write<'u'>, state.text);
  slow.ready()->launch(*normal, slow.works);
  state.held.wait();
  fast.ready()->launch(*urgent, fast.works);
  state.released.count_down();
  finish(*normal);
  CHECK_EQUAL(state.text, "uuunnn");
}

TEST(a_replay_and_other_streams_take_turns) {
  CpuBackend& device = make_device(1);
  const auto a = stream(device);
  const auto b = stream(device);
  struct State {
    std::latch held{1};
    std::latch released{1};
    std::string text = {};
  } state;
  Draft draft(device);
  Nodes last = {draft.launch<State>(
      {},
      [](std::int64_t, std::int64_t, State& state) {
        state.held.count_down();
        state.released.wait();
      },
      state)};
  for (int i = 0; i < 1'000; ++i) last = {draft.launch<std::string>(last, &write<'a'>, state.text)};
  draft.ready()->launch(*a, draft.works);
  state.held.wait();
  launch<std::string>(*b, 1, &write<'b'>, state.text);
  state.released.count_down();
  finish(*a);
  finish(*b);
  CHECK(state.text.find('b') < 500);
}

TEST(nodes_that_are_split_make_room_for_urgent_work) {
  CpuBackend& device = make_device(2);
  const auto normal = stream(device);
  const auto urgent = device.create_stream({.priority = -1});
  struct Counts {
    std::vector<int> of = std::vector<int>(50'000);
    std::int64_t urgent = 0;
  } counts;
  const auto count = [](std::int64_t begin, std::int64_t end, Counts& counts) {
    for (std::int64_t i = begin; i < end; ++i) {
      ++counts.of[static_cast<std::size_t>(i)];
      for (volatile int wait = 0; wait < 20;) wait = wait + 1;
    }
  };
  Draft draft(device);
  Nodes last;
  for (int i = 0; i < 20; ++i) last = {draft.launch<Counts>(last, count, counts, 50'000)};
  const auto executable = draft.ready();
  const Point point = executable->launch(*normal, draft.works);
  std::int64_t launched = 0;
  while (!device.query(*normal, point) && launched < 1'000) {
    finish(*urgent, launch<std::int64_t>(*urgent, 1, &increment, counts.urgent));
    ++launched;
  }
  finish(*normal);
  CHECK_EQUAL(counts.urgent, launched);
  CHECK_EQUAL(std::accumulate(counts.of.begin(), counts.of.end(), 0), 20 * 50'000);
}

}  // namespace
}  // namespace anabranch::cpu
