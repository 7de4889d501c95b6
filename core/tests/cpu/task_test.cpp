// Kernels, split over the workers.
#include <algorithm>
#include <array>
#include <latch>
#include <thread>

#include "device.hpp"

namespace anabranch::cpu {
namespace {

using namespace check;

// Counts how often each index ran.
struct Counts {
  explicit Counts(std::int64_t size, std::int64_t slow_every = 0, int rounds = 0)
      : of(static_cast<std::size_t>(size)), slow_every(slow_every), rounds(rounds) {}

  std::vector<std::uint8_t> of;
  std::int64_t slow_every;  // every so many indices take `rounds` more
  int rounds;

  static void run(std::int64_t begin, std::int64_t end, Counts& counts) {
    for (std::int64_t i = begin; i < end; ++i) {
      ++counts.of[static_cast<std::size_t>(i)];
      if (counts.slow_every == 0 || i % counts.slow_every != 0) continue;
      for (volatile int round = 0; round < counts.rounds;) round = round + 1;
    }
  }
  bool all(int times) const {
    return std::all_of(of.begin(), of.end(), [times](int count) { return count == times; });
  }
};

Point count(Stream& stream, Counts& counts) {
  return launch<Counts>(stream, static_cast<std::int64_t>(counts.of.size()), &Counts::run, counts);
}

TEST(a_kernel_runs_each_index_once) {
  for (const int workers : {1, 2, 3, 7}) {
    CpuBackend& device = make_device(workers);
    const auto a = stream(device);
    for (const std::int64_t size :
         {0, 1, 2, 7, 8, 9, 63, 64, 65, 72, 73, 74, 511, 585, 586, 4095, 4097, 99'991, 1'000'003}) {
      Counts counts(size);
      finish(*a, count(*a, counts));
      CHECK(counts.all(1));
    }
  }
}

TEST(a_kernel_of_uneven_indices_runs_each_once) {
  CpuBackend& device = make_device(3);
  const auto a = stream(device);
  // The first index slow, so that the rest is thought to be; all slow; few slow; the last slow.
  for (const std::int64_t slow_every : {1'000'000, 1, 97, 2'999}) {
    for (const std::int64_t size : {2, 3, 64, 65, 3'000, 50'001}) {
      Counts counts(size, slow_every, slow_every == 1 ? 100 : 20'000);
      finish(*a, count(*a, counts));
      CHECK(counts.all(1));
    }
  }
}

TEST(kernels_of_several_streams_share_the_workers) {
  CpuBackend& device = make_device(3);
  std::vector<Ref<Stream>> streams;
  std::vector<Counts> counts(8, Counts(40'000, 3, 50));
  std::vector<std::unique_ptr<Gate>> gates;
  for (int i = 0; i < 8; ++i) {
    streams.push_back(device.create_stream({.priority = i % 3 == 0 ? -1 : 0}));
    gates.push_back(std::make_unique<Gate>(*streams.back()));
  }
  for (int round = 0; round < 5; ++round) {
    for (std::size_t i = 0; i < streams.size(); ++i) count(*streams[i], counts[i]);
  }
  gates.clear();
  for (const auto& each : streams) finish(*each);
  for (const Counts& each : counts) CHECK(each.all(5));
}

TEST(a_kernel_displaced_by_urgent_work_runs_each_index_once) {
  for (const int workers : {1, 3}) {
    CpuBackend& device = make_device(workers);
    const auto normal = stream(device);
    const auto urgent = device.create_stream({.priority = -1});
    Counts counts(200'000, 1, 100);
    Counts small(100);
    const Point point = count(*normal, counts);
    int launched = 0;
    while (!device.query(*normal, point) && launched < 100) {
      finish(*urgent, count(*urgent, small));
      ++launched;
    }
    finish(*normal, point);
    CHECK(counts.all(1));
    CHECK(small.all(launched));
  }
}

TEST(urgent_work_goes_into_a_running_kernel) {
  CpuBackend& device = make_device(1);
  const auto normal = stream(device);
  const auto urgent = device.create_stream({.priority = -1});
  struct Long {
    std::latch running{1};
    std::latch queued{1};
    std::atomic<bool> urgent_over{false};
    std::atomic<bool> saw_urgent_over{false};
  } state;
  // The one worker is in the first index when the urgent kernel is enqueued; that one must be over before the last
  // index.
  const Point point = launch<Long>(
      *normal, 64,
      [](std::int64_t begin, std::int64_t end, Long& state) {
        if (begin == 0) {
          state.running.count_down();
          state.queued.wait();
          const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
          while (std::chrono::steady_clock::now() < until) continue;
        }
        if (end == 64) state.saw_urgent_over = state.urgent_over.load();
      },
      state);
  state.running.wait();
  call(*urgent, [&state] { state.urgent_over = true; });
  state.queued.count_down();
  finish(*normal, point);
  CHECK(state.saw_urgent_over);
}

TEST(a_long_kernel_uses_all_workers) {
  CpuBackend& device = make_device(4);
  const auto a = stream(device);
  // Each index holds its worker until four of them are held.
  struct Meeting {
    std::latch all_there{4};
    std::atomic<int> arrived{0};
  } meeting;
  launch<Meeting>(
      *a, 5,
      [](std::int64_t begin, std::int64_t, Meeting& meeting) {
        if (begin == 0) {  // alone, to be found slow
          const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(2);
          while (std::chrono::steady_clock::now() < until) continue;
        } else {
          meeting.all_there.arrive_and_wait();
        }
      },
      meeting);
  finish(*a);
}

TEST(kernels_of_one_function_may_take_very_different_times) {
  for (const int workers : {1, 2, 3, 7}) {
    CpuBackend& device = make_device(workers);
    const auto a = stream(device);
    // What the one before took is no more than a hint for the next, in both directions.
    std::vector<Counts> all;
    for (int round = 0; round < 6; ++round) {
      all.emplace_back(100'000);
      all.emplace_back(300, 1, 3'000);
      all.emplace_back(2);
      all.emplace_back(20'000, 1, 30);
    }
    for (Counts& counts : all) count(*a, counts);
    finish(*a);
    for (const Counts& counts : all) CHECK(counts.all(1));
  }
}

TEST(a_worker_gets_the_same_part_of_each_kernel) {
  CpuBackend& device = make_device(2);
  const auto a = stream(device);
  // Slow enough to be shared; at every other index both workers are held until both are there.
  struct Parts {
    std::latch both{2};
    std::array<std::thread::id, 4> of;
  };
  std::array<Parts, 4> rounds;
  for (Parts& parts : rounds) {
    launch<Parts>(
        *a, 4,
        [](std::int64_t begin, std::int64_t end, Parts& parts) {
          for (std::int64_t i = begin; i < end; ++i) {
            parts.of[static_cast<std::size_t>(i)] = std::this_thread::get_id();
            const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
            while (std::chrono::steady_clock::now() < until) continue;
            if (i % 2 == 1) parts.both.arrive_and_wait();
          }
        },
        parts);
    finish(*a);
  }
  // How long an index takes is known from the second kernel on.
  for (std::size_t i = 1; i < rounds.size(); ++i) {
    CHECK(rounds[i].of == rounds[1].of);
    CHECK(rounds[i].of[1] != rounds[i].of[3]);
  }
}

TEST(operations_after_a_kernel_see_all_of_it) {
  CpuBackend& device = make_device(3);
  const auto a = stream(device);
  Counts counts(100'000, 1, 20);
  std::atomic<int> wrong{0};
  for (int round = 1; round <= 10; ++round) {
    count(*a, counts);
    call(*a, [&counts, &wrong, round] { wrong += !counts.all(round); });
  }
  finish(*a);
  CHECK_EQUAL(wrong.load(), 0);
}

TEST(a_kernel_gets_its_dimensions_and_a_copy_of_its_arguments) {
  CpuBackend& device = make_device(2);
  const auto a = stream(device);
  struct Seen {
    std::int64_t dims[4] = {};
    std::uint64_t slot = 0;
  } seen[2];
  const auto entry = [](std::int64_t begin, std::int64_t end, const std::int64_t* dims, const void* arguments) {
    const auto* slots = static_cast<const std::uint64_t*>(arguments);
    auto& seen = *reinterpret_cast<Seen*>(slots[0]);
    if (begin == 0) std::copy(dims, dims + 4, seen.dims);
    if (end == 24) seen.slot = slots[1];
    return end;
  };
  std::int64_t (*const code)(std::int64_t, std::int64_t, const std::int64_t*, const void*) = entry;
  auto kernel = make_ref<Kernel>(reinterpret_cast<void*>(code), "kernel");
  {
    const Gate gate(*a);
    std::uint64_t slots[2];
    for (std::uint64_t i = 0; i < 2; ++i) {
      slots[0] = reinterpret_cast<std::uint64_t>(&seen[i]);
      slots[1] = 70 + i;
      device.launch(*a, *kernel, {3, {2, 3, 4, 1}}, slots);
    }
    slots[1] = 0;
    kernel.reset();
  }
  finish(*a);
  for (std::uint64_t i = 0; i < 2; ++i) {
    CHECK_EQUAL(seen[i].slot, 70 + i);
    CHECK_EQUAL(seen[i].dims[0], 2);
    CHECK_EQUAL(seen[i].dims[1], 3);
    CHECK_EQUAL(seen[i].dims[2], 4);
  }
}

TEST(kernels_without_arguments_or_indices_run) {
  CpuBackend& device = make_device(2);
  const auto a = stream(device);
  std::int64_t (*const code)(std::int64_t, std::int64_t, const std::int64_t*, const void*) =
      [](std::int64_t, std::int64_t end, const std::int64_t*, const void*) { return end; };
  const auto kernel = make_ref<Kernel>(reinterpret_cast<void*>(code), "kernel");
  for (const std::int64_t size : {0, 1, 100'000}) device.launch(*a, *kernel, {1, {size, 1, 1, 1}}, {});
  finish(*a);
}

}  // namespace
}  // namespace anabranch::cpu
