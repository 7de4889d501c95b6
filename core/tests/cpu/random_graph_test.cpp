// Replays of random graphs: each node once, after all that it comes after.
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <random>
#include <thread>

#include "draft.hpp"

namespace anabranch::cpu {
namespace {

using namespace check;

// A thread that does what it is given, in another order than it came.
class Elsewhere {
 public:
  Elsewhere() : thread_([this] { work(); }) {}
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;
  ~Elsewhere() {
    add(nullptr);
    thread_.join();
  }
  void add(std::function<void()> job) {
    std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(job));
    signal_.notify_one();
  }

 private:
  void work() {
    std::minstd_rand random;
    while (true) {
      std::unique_lock lock(mutex_);
      signal_.wait(lock, [this] { return !waiting_.empty(); });
      std::swap(waiting_.front(), waiting_[random() % waiting_.size()]);
      const std::function<void()> job = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      if (!job) return;
      job();
    }
  }

  std::mutex mutex_;
  std::condition_variable signal_;
  std::deque<std::function<void()>> waiting_;
  std::thread thread_;
};

// When a node began and ended, by a clock that all share; the count of its runs.
struct Times {
  std::atomic<int>* clock = nullptr;
  int began = 0;
  int ended = 0;
  int runs = 0;

  void begin() { began = ++*clock; }
  void end() {
    ended = ++*clock;
    ++runs;
  }
};

class RandomGraph {
 public:
  RandomGraph(std::vector<CpuBackend*> devices, std::minstd_rand& random, Elsewhere& elsewhere)
      : devices_(std::move(devices)), random_(random), elsewhere_(elsewhere), draft_(*devices_[0]) {
    fill(draft_, 12, 2);
  }

  void replay_and_check() {
    const auto instance = draft_.instance();
    std::vector<Ref<Stream>> streams;
    for (CpuBackend* device : devices_) streams.push_back(device->create_stream({.priority = chance(3) ? -1 : 0}));
    for (int replay = 1; replay <= 3; ++replay) {
      Stream& stream = *streams[random_() % streams.size()];
      cpu::replay(*instance, stream);
      if (chance(2)) check::finish(stream);
    }
    for (const auto& each : streams) check::finish(*each);
    for (const Part& part : parts_) {
      for (std::size_t i = 0; i < part.times.size(); ++i) {
        CHECK_EQUAL(part.times[i]->runs, 3);
        for (const std::uint32_t before : part.graph->nodes[i].after)
          CHECK(part.times[before]->ended < part.times[i]->began);
      }
    }
  }

 private:
  // One graph: its own, or one within.
  struct Part {
    Ref<Graph> graph;
    std::vector<Times*> times;
  };

  bool chance(unsigned in) { return random_() % in == 0; }

  Times& make_times() {
    times_.emplace_back().clock = &clock_;
    return times_.back();
  }

  void fill(Draft& draft, unsigned most, int depth) {
    const unsigned count = 1 + random_() % most;
    const unsigned density = 1 + random_() % 4;
    Part part{draft.graph, {}};
    for (std::uint32_t i = 0; i < count; ++i) {
      Nodes after;
      for (std::uint32_t before = 0; before < i; ++before) {
        if (chance(1 + density)) after.push_back(before);
      }
      part.times.push_back(&add(draft, std::move(after), depth));
    }
    parts_.push_back(std::move(part));
  }

  Times& add(Draft& draft, Nodes after, int depth) {
    CpuBackend* const where = devices_[random_() % devices_.size()];
    Times& times = make_times();
    const auto begin = [](std::int64_t, std::int64_t, Times& times) { times.begin(); };
    const auto end = [](std::int64_t, std::int64_t, Times& times) { times.end(); };
    const auto both = [](std::int64_t, std::int64_t, Times& times) {
      times.begin();
      for (volatile int i = 0; i < *times.clock % 64;) i = i + 1;
      times.end();
    };
    switch (random_() % (depth > 0 ? 8 : 6)) {
      case 0:
        draft.host(std::move(after), [this, &times] {
          return make_ref<Told>(
              [this, &times](Told& told) {
                times.begin();
                elsewhere_.add([pending = Ref<HostOperation>::share(&told), &times] {
                  times.end();
                  pending->complete();
                });
              },
              [] {});
        });
        break;
      case 6:
      case 7: {
        // Between two nodes that tell when it began and ended, there being nothing else that would.
        Draft outer(*where);
        Draft inner(*where);
        fill(inner, 5, depth - 1);
        const auto first = outer.add(NodeKind::kernel, {}, kernel<Times>(1, begin, times), where);
        const auto body = chance(2) ? outer.nest({first}, inner) : outer.branch({first}, always, inner);
        outer.add(NodeKind::kernel, {body}, kernel<Times>(1, end, times), where);
        draft.nest(std::move(after), outer);
        break;
      }
      default:
        draft.add(NodeKind::kernel, std::move(after), kernel<Times>(1, both, times), where);
    }
    return times;
  }
  static constexpr std::int32_t always = 1;

  std::vector<CpuBackend*> devices_;
  std::minstd_rand& random_;
  Elsewhere& elsewhere_;
  std::atomic<int> clock_{0};
  std::deque<Times> times_;
  std::vector<Part> parts_;
  Draft draft_;
};

TEST(random_graphs_keep_their_order) {
  std::minstd_rand random(1);
  Elsewhere elsewhere;
  const std::vector<std::vector<CpuBackend*>> places{{&make_device(1)},
                                                     {&make_device(2)},
                                                     {&make_device(4)},
                                                     {&make_device(1), &make_device(2)},
                                                     {&make_device(2), &make_device(1), &make_device(1)}};
  for (int round = 0; round < 600; ++round) {
    for (const auto& devices : places) RandomGraph(devices, random, elsewhere).replay_and_check();
  }
}

}  // namespace
}  // namespace anabranch::cpu
