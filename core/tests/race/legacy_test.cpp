// The legacy stream's order under traffic from several threads. To be run under ThreadSanitizer.
#include <thread>

#include "cpu/device.hpp"
#include "threads.hpp"

namespace anabranch::cpu {
namespace {

using namespace check;

// What runs now. A legacy operation runs alone; blocking streams' operations may run side by side. All but `value_` is
// relaxed, so that only the streams' order can keep ThreadSanitizer from calling the accesses to that a race.
class Crossing {
 public:
  void legacy() {
    check(!legacy_.exchange(true, relaxed));
    value_ = value_ + 1;
    for (int i = 0; i < 50; ++i) check(blocking_.load(relaxed) == 0);
    legacy_.store(false, relaxed);
  }
  void blocking() {
    blocking_.fetch_add(1, relaxed);
    seen_.fetch_add(value_, relaxed);
    for (int i = 0; i < 50; ++i) check(!legacy_.load(relaxed));
    blocking_.fetch_sub(1, relaxed);
  }
  bool broken() const { return broken_; }
  long legacy_operations() const { return value_; }

 private:
  static constexpr auto relaxed = std::memory_order_relaxed;
  void check(bool holds) {
    if (!holds) broken_.store(true, relaxed);
  }

  std::atomic<bool> legacy_{false};
  std::atomic<int> blocking_{0};
  std::atomic<bool> broken_{false};
  std::atomic<long> seen_{0};
  long value_ = 0;
};

TEST(legacy_operations_run_alone_among_blocking_ones) {
  CpuBackend& device = make_device(3);
  const auto legacy = device.default_stream(StreamRole::legacy);
  Crossing crossing;
  in_threads(4, [&](int t) {
    auto own = t % 2 ? device.default_stream(StreamRole::per_thread) : stream(device, "blocking", false);
    const auto free = stream(device);
    for (int round = 0; round < 250; ++round) {
      call(*own, [&crossing] { crossing.blocking(); });
      if (round % 3 == t % 3) call(*legacy, [&crossing] { crossing.legacy(); });
      if (round % 5 == 0) call(*free, [] {});
      if (round % 40 == 0) device.wait(*own, *legacy, device.record(*legacy));
      if (round % 70 == 0) finish(*own);
      if (round % 50 == 0 && t % 2 == 0) own = stream(device, "another", false);
    }
    finish(*own);
  });
  finish(*legacy);
  CHECK(!crossing.broken());
  CHECK(crossing.legacy_operations() >= 4 * 250 / 3);
}

TEST(looking_at_the_legacy_stream_covers_work_put_in_before) {
  CpuBackend& device = make_device(2);
  const auto legacy = device.default_stream(StreamRole::legacy);
  std::vector<Ref<Stream>> streams;
  for (int i = 0; i < 16; ++i) streams.push_back(stream(device, "blocking", false));
  std::atomic<bool> enough{false};
  // Another thread's legacy work takes over what this thread's records have to cover.
  std::thread other([&] {
    while (!enough) {
      Point point = 0;
      for (int i = 0; i < 20; ++i) point = call(*legacy, [] {});
      finish(*legacy, point);
    }
  });
  std::atomic<int> run{0};
  int missing = 0;
  for (int round = 1; round <= 3000; ++round) {
    for (const auto& each : streams) call(*each, [&run] { ++run; });
    if (round % 2) {
      finish(*legacy, device.record(*legacy));
    } else {
      for (const Record& record : device.frontier(*legacy)) finish(*record.stream, record.point);
    }
    missing += run != round * 16;
  }
  enough = true;
  other.join();
  for (const auto& each : streams) finish(*each);
  CHECK_EQUAL(missing, 0);
}

TEST(blocking_streams_end_while_the_legacy_stream_works) {
  CpuBackend& device = make_device(2);
  const auto legacy = device.default_stream(StreamRole::legacy);
  std::atomic<int> run{0};
  in_threads(3, [&](int) {
    for (int round = 0; round < 300; ++round) {
      const auto own = stream(device, "blocking", false);
      call(*own, [&run] { ++run; });
      call(*legacy, [&run] { ++run; });
      call(*own, [&run] { ++run; });
    }
  });
  finish(*legacy);
  CHECK(eventually([&] { return run == 3 * 300 * 3; }));
}

TEST(waits_between_blocking_streams_never_lead_around_the_legacy_stream) {
  CpuBackend& device = make_device(2);
  const auto legacy = device.default_stream(StreamRole::legacy);
  const auto first = stream(device, "blocking", false);
  const auto between = stream(device);
  // Many, so that the legacy operation takes a while to see to all; the last of them waits for the first stream then.
  std::vector<Ref<Stream>> streams;
  for (int i = 0; i < 64; ++i) streams.push_back(stream(device, "blocking", false));
  std::atomic<bool> ready{false};
  std::atomic<bool> enough{false};
  std::thread other([&] {
    while (!enough) {
      if (ready.exchange(false)) call(*legacy, [] {});
    }
  });
  std::atomic<int> run{0};
  constexpr int rounds = 2000;
  for (int round = 1; round <= rounds && !enough; ++round) {
    call(*legacy, [] {});  // so that the first stream has to wait for the next one
    for (const auto& each : streams) call(*each, [] {});
    ready = true;
    for (int i = 0; i < 4 * (round % 64); ++i) static_cast<void>(device.record(*between));
    call(*first, [] {});
    device.wait(*between, *first, device.record(*first));
    device.wait(*streams.back(), *between, device.record(*between));
    call(*streams.back(), [&run] { ++run; });
    if (!eventually([&] { return run == round; })) enough = true;
  }
  enough = true;
  other.join();
  CHECK_EQUAL(run, rounds);
}

}  // namespace
}  // namespace anabranch::cpu
