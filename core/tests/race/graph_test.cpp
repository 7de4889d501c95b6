// Graphs captured, launched and changed by many threads. To be run under ThreadSanitizer.
#include <thread>

#include "anabranch/graph/capture.hpp"
#include "cpu/draft.hpp"
#include "threads.hpp"

namespace anabranch::cpu {
namespace {

using namespace check;

// Not atomic: two of them at a time are a race.
void add_one(std::int64_t, std::int64_t, std::int64_t& count) { ++count; }
void add_hundred(std::int64_t, std::int64_t, std::int64_t& count) { count += 100; }

TEST(one_graph_is_replayed_by_many_threads) {
  CpuBackend& device = make_device(2);
  CpuBackend& other = make_device(2);
  std::int64_t count = 0;
  std::atomic<int> side{0};
  Draft draft(device);
  const auto first = draft.launch<std::int64_t>({}, &add_one, count);
  Nodes both;
  for (int i = 0; i < 2; ++i) both.push_back(draft.call({first}, [&side] { ++side; }));
  draft.add(NodeKind::kernel, both, kernel<std::int64_t>(1, &add_one, count), &other);
  const auto instance = draft.instance();
  in_threads(4, [&](int thread) {
    const auto a = stream(thread % 2 ? device : other);
    for (int round = 0; round < 100; ++round) {
      replay(*instance, *a);
      if (round % 10 == 0) finish(*a);
    }
    finish(*a);
  });
  CHECK_EQUAL(count, 800);
  CHECK_EQUAL(side.load(), 800);
  CHECK_EQUAL(instance->replays(), 400U);
}

TEST(works_are_changed_while_others_launch) {
  CpuBackend& device = make_device(2);
  std::int64_t count = 0;
  Draft draft(device);
  const auto first = draft.launch<std::int64_t>({}, &add_one, count);
  draft.launch<std::int64_t>({first}, &add_one, count);
  const auto instance = draft.instance();
  // So that those of the instance are not shared, and are changed in place between replays.
  draft.works.reset();
  constexpr int rounds = 300;
  in_threads(4, [&](int thread) {
    const auto a = stream(device);
    for (int round = 0; round < rounds; ++round) {
      if (thread == 0) {
        instance->set(1, kernel<std::int64_t>(1, round % 2 ? &add_one : &add_hundred, count));
      } else if (thread == 1) {
        // As a graphed call does: it looks at what there is, and replaces it for its own replay and the later ones.
        instance->launch(*a, nullptr, [&](Change& change) {
          const auto& now = std::get<KernelWork>(change.now().of[1]->what);
          if (now.arguments.size() != 2) std::abort();
          if (round % 3) return;
          change.what(1) = kernel<std::int64_t>(1, &add_hundred, count);
        });
      } else {
        replay(*instance, *a);
        if (instance->works()->of.size() != 2) std::abort();
      }
      if (round % 20 == 0) finish(*a);
    }
    finish(*a);
  });
  CHECK_EQUAL(instance->replays(), 3U * rounds);
  CHECK(count >= 2 * 3 * rounds);
  CHECK_EQUAL((count - 2 * 3 * rounds) % 99, 0);
}

TEST(a_graph_becomes_another_while_others_launch) {
  CpuBackend& device = make_device(2);
  std::int64_t count = 0;
  const auto chain = [&](int length) {
    auto draft = std::make_unique<Draft>(device);
    Nodes last;
    for (int i = 0; i < length; ++i) last = {draft->launch<std::int64_t>(last, &add_one, count)};
    return draft;
  };
  const auto one = chain(1);
  const auto same = chain(1);
  const auto three = chain(3);
  const auto instance = one->instance();
  in_threads(3, [&](int thread) {
    const auto a = stream(device);
    for (int round = 0; round < 200; ++round) {
      if (thread == 0) {
        const Draft& next = *(round % 3 == 0 ? three : round % 3 == 1 ? same : one);
        instance->update(next.graph, next.works);
      } else {
        replay(*instance, *a);
        if (instance->graph()->nodes.empty()) std::abort();
      }
    }
    finish(*a);
  });
  CHECK_EQUAL(instance->replays(), 400U);
  CHECK(count >= 400);
  CHECK(count <= 1200);
}

TEST(an_instance_is_dropped_while_its_replays_run) {
  CpuBackend& device = make_device(2);
  std::int64_t count = 0;
  Draft draft(device);
  draft.launch<std::int64_t>({draft.launch<std::int64_t>({}, &add_one, count)}, &add_one, count);
  for (int round = 0; round < 50; ++round) {
    auto instance = make_ref<GraphInstance>(draft.graph, draft.works);
    std::vector<Ref<GraphInstance>> shares(4, instance);
    instance.reset();
    std::vector<Ref<Stream>> streams;
    for (int i = 0; i < 4; ++i) streams.push_back(stream(device));
    in_threads(4, [&](int thread) {
      Ref<GraphInstance> own = std::move(shares[static_cast<std::size_t>(thread)]);
      for (int i = 0; i < 5; ++i) replay(*own, *streams[static_cast<std::size_t>(thread)]);
    });
    for (const auto& each : streams) finish(*each);
  }
  CHECK_EQUAL(count, 50 * 4 * 5 * 2);
}

// Puts a launch into a stream, which may be captured.
Point put(Stream& stream, std::int64_t& count) {
  Stream& target = Capture::recorder_of(stream);
  const KernelWork work = kernel<std::int64_t>(1, &add_one, count);
  return target.backend().launch(target, *work.kernel, std::get<LaunchShape>(work.grid), work.arguments);
}

TEST(threads_capture_and_replay_at_once) {
  CpuBackend& device = make_device(2);
  // One that takes no part, and is used meanwhile.
  const auto beside = stream(device);
  std::atomic<std::int64_t> outside{0};
  in_threads(4, [&](int thread) {
    const auto a = stream(device);
    const auto b = stream(device);
    std::int64_t count = 0;
    for (int round = 0; round < 60; ++round) {
      const auto capture = Capture::begin(*a);
      for (int i = 0; i < 5; ++i) {
        put(*a, count);
        Stream& joined = Capture::follower(*b, *a->recording());
        joined.backend().wait(joined, *a->recording(), a->recording()->issued());
        put(*b, count);
        a->recording()->backend().wait(*a->recording(), joined, joined.issued());
        call(*beside, [&outside] { ++outside; });
      }
      if ((round + thread) % 4 == 0) {
        capture->abandon("it was not meant");
        continue;
      }
      Ref<Works> works;
      const Ref<Graph> graph = capture->end(works);
      if (graph->nodes.size() != 10) std::abort();
      const auto instance = make_ref<GraphInstance>(graph, works);
      replay(*instance, *a);
      replay(*instance, *b);
      finish(*b);
    }
    if (a->recording() || b->recording()) std::abort();
    if (count != 45 * 2 * 10) std::abort();
  });
  finish(*beside);
  CHECK_EQUAL(outside.load(), 4 * 60 * 5);
  CHECK(!capturing());
}

TEST(others_look_at_a_stream_while_it_is_captured_again_and_again) {
  CpuBackend& device = make_device(2);
  const auto a = stream(device);
  std::atomic<bool> over{false};
  std::thread looking([&] {
    while (!over) {
      // As a query does of a stream that another thread captures.
      const Stream& recorder = Capture::recorder_of(*a);
      if (recorder.capture()) recorder.capture()->active();
    }
  });
  for (int round = 0; round < 500; ++round) {
    std::int64_t count = 0;
    const auto capture = Capture::begin(*a);
    put(*a, count);
    Ref<Works> works;
    capture->end(works);
  }
  over = true;
  looking.join();
}

}  // namespace
}  // namespace anabranch::cpu
