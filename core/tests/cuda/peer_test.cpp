// Two GPUs: order across them, and memory that both use.
#include <array>
#include <thread>

#include "device.hpp"
#include "threads.hpp"

namespace anabranch::cuda {
namespace {

using namespace check;

constexpr std::size_t size = 4096;

// Either way round.
void each_way(const std::function<void(CudaBackend& here, CudaBackend& there)>& body) {
  body(device(), second_device());
  body(second_device(), device());
}

bool holds(const Pair& pair, int value) {
  return pair.host->pointer()[0] == static_cast<std::byte>(value) &&
         pair.host->pointer()[size - 1] == static_cast<std::byte>(value);
}

// The streams that one GPU has of its own: their handles mean those of the current context.
std::vector<Ref<Stream>> streams_of(CudaBackend& device) {
  return {stream(device), stream(device, "blocking", false), device.default_stream(StreamRole::legacy),
          device.default_stream(StreamRole::per_thread)};
}

// For each stream that waits and each that it waits for: with memory of theirs that nothing uses yet.
void each_pair(const std::function<void(Stream& waiting, Pair& result, Stream& target, Pair& source)>& body) {
  each_way([&body](CudaBackend& here, CudaBackend& there) {
    for (const Ref<Stream>& target : streams_of(there)) {
      for (const Ref<Stream>& waiting : streams_of(here)) {
        Pair source(there, *target, size);
        Pair result(here, *waiting, size);
        finish(*waiting);
        std::memset(source.host->pointer(), 7, size);
        body(*waiting, result, *target, source);
        finish(*waiting);
        CHECK(holds(result, 7));
      }
    }
  });
}

TEST(every_stream_waits_for_every_stream_of_the_other) {
  each_pair([](Stream& waiting, Pair& result, Stream& target, Pair& source) {
    Gate gate(target);
    source.upload(target);
    waiting.backend().wait(waiting, target, target.backend().record(target));
    copy(waiting, *result.memory, *source.memory, size);
    result.download(waiting);
  });
}

TEST(waits_for_what_the_driver_has_need_no_gate) {
  each_pair([](Stream& waiting, Pair& result, Stream& target, Pair& source) {
    source.upload(target);
    waiting.backend().wait(waiting, target, target.issued());
    copy(waiting, *result.memory, *source.memory, size);
    result.download(waiting);
  });
}

TEST(an_event_of_one_is_waited_for_on_the_other) {
  each_way([](CudaBackend& here, CudaBackend& there) {
    const Log log;
    const auto a = stream(there);
    const auto b = stream(here);
    Event event(there, {});
    Gate gate(*a);
    check::log(*a, log, "first");
    event.record(*a);
    event.wait(*b);
    check::log(*b, log, "second");
    CHECK_THROWS(Error, event.record(*b));
    gate.open();
    finish(*b);
    CHECK(log.lines() == (Lines{"first", "second"}));
  });
}

TEST(memory_is_freed_behind_uses_of_both) {
  each_way([](CudaBackend& here, CudaBackend& there) {
    const auto a = stream(here);
    const auto b = stream(there);
    const std::size_t free_before = here.free_memory();
    for (int round = 0; round < 200; ++round) {
      Pair source(here, *a, size);
      Pair result(there, *b, size);
      std::memset(source.host->pointer(), round % 128, size);
      source.upload(*a);
      there.wait(*b, *a, a->issued());
      copy(*b, *result.memory, *source.memory, size);
      result.download(*b);
      if (round % 16 == 0) {
        finish(*b);
        CHECK(holds(result, round % 128));
      }
    }
    finish(*a);
    finish(*b);
    CHECK(eventually([&] { return here.free_memory() + (std::size_t{64} << 20) > free_before; }));
  });
}

TEST(a_failure_passes_to_the_other) {
  each_way([](CudaBackend& here, CudaBackend& there) {
    const auto a = stream(there);
    const auto b = stream(here);
    here.wait(*b, *a, fail(*a, "broken"));
    CHECK_EQUAL(failure_at(*b, b->issued()), "broken");
    const auto c = stream(here);
    finish(*c, here.record(*c));
  });
}

TEST(threads_hand_work_to_and_fro) {
  CudaBackend& first = device();
  CudaBackend& second = second_device();
  std::array<bool, 4> in_order{};
  in_threads(4, [&](int number) {
    const std::array<Ref<Stream>, 2> pair{stream(first), stream(second)};
    const Log log;
    Lines expected;
    for (int round = 0; round < 50; ++round) {
      const Ref<Stream>& from = pair[round % 2];
      const Ref<Stream>& to = pair[(round + 1) % 2];
      const std::string line = std::to_string(number) + "." + std::to_string(round);
      const Point point = round % 3 == 0 ? from->backend().record(*from) : check::log(*from, log, line);
      if (round % 3 != 0) expected.push_back(line);
      to->backend().wait(*to, *from, point);
    }
    finish(*pair[0]);
    finish(*pair[1]);
    in_order.at(static_cast<std::size_t>(number)) = log.lines() == expected;
  });
  CHECK(in_order == (std::array{true, true, true, true}));
}

}  // namespace
}  // namespace anabranch::cuda
