// Streams of the driver's: handles, pools, other kinds of device, and what is held back.
#include <set>
#include <thread>

#include "cpu/backend.hpp"
#include "device.hpp"

namespace anabranch::cuda {
namespace {

using namespace check;

cpu::CpuBackend& cpu_device() {
  static auto* const made = new cpu::CpuBackend(0, 2, std::size_t{1} << 30, pinned_source());
  return *made;
}

TEST(a_stream_of_somebody_else_has_one_record) {
  const ContextScope scope(device().open());
  CUstream native = nullptr;
  device().check(driver->cuStreamCreateWithPriority(&native, CU_STREAM_NON_BLOCKING, -1), "creating a stream");
  const auto handle = reinterpret_cast<std::uintptr_t>(native);
  {
    const auto first = device().find_stream(handle);
    CHECK(device().find_stream(handle) == first);
    CHECK_EQUAL(first->handle(), handle);
    CHECK_EQUAL(first->priority(), -1);
    CHECK(first->non_blocking());
    Pair pair(device(), *first, 4096);
    const Point point = pair.upload(*first);
    device().release_external(*first);
    driver->cuStreamDestroy(native);
    finish(*first, point);
  }
  CHECK(stream(device())->handle() > 2);
}

TEST(dropped_streams_are_used_again) {
  std::set<std::uintptr_t> handles;
  for (int i = 0; i < 1000; ++i) {
    const auto a = stream(device());
    Pair pair(device(), *a, 64);
    pair.upload(*a);
    handles.insert(a->handle());
    // A GPU that others use, too, may be far behind the host.
    if (i % 50 == 0) finish(*a);
  }
  CHECK(handles.size() < 100);
}

TEST(many_streams_and_events_leave_no_growth) {
  const auto a = stream(device());
  Event event(device(), {});
  std::set<std::uintptr_t> handles;
  for (int i = 0; i < 100'000; ++i) {
    const auto b = stream(device());
    event.record(*a);
    event.wait(*b);
    handles.insert(b->handle());
  }
  finish(*a);
  // As many as the host is ahead of the GPU.
  CHECK(handles.size() < 5000);
}

TEST(streams_of_two_kinds_wait_for_each_other) {
  const Log log;
  const auto here = stream(device(), "here");
  const auto there = stream(cpu_device(), "there");
  Gate gate(*there);
  for (const char* round : {"1", "2", "3"}) {
    const Point point = check::log(*there, log, std::string("cpu") + round);
    device().wait(*here, *there, point);
    const Point back = check::log(*here, log, std::string("cuda") + round);
    cpu_device().wait(*there, *here, back);
  }
  CHECK(log.lines().empty());
  gate.open();
  finish(*here);
  finish(*there);
  CHECK(log.lines() == (Lines{"cpu1", "cuda1", "cpu2", "cuda2", "cpu3", "cuda3"}));
}

TEST(failures_pass_between_kinds) {
  const auto here = stream(device());
  const auto there = stream(cpu_device());
  device().wait(*here, *there, fail(*there, "broken"));
  CHECK_EQUAL(failure_at(*here, here->issued()), "broken");
  const auto again = stream(cpu_device());
  cpu_device().wait(*again, *here, here->issued());
  CHECK_EQUAL(failure_at(*again, again->issued()), "broken");
}

TEST(a_thread_ends_with_work_in_its_own_stream) {
  CudaBackend& gpu = device();
  Ref<Stream> own;
  Point point = 0;
  std::thread([&] {
    own = gpu.default_stream(StreamRole::per_thread);
    Pair pair(gpu, *own, std::size_t{1} << 20);
    point = pair.upload(*own);
  }).join();
  finish(*own, point);
}

TEST(a_per_thread_stream_goes_on_after_a_gate) {
  const Log log;
  const auto own = device().default_stream(StreamRole::per_thread);
  Pair pair(device(), *own, 4096);
  for (int round = 1; round <= 3; ++round) {
    Gate gate(*own);
    std::memset(pair.host->pointer(), round, pair.size);
    pair.upload(*own);
    std::thread([&gate] { gate.open(); }).join();
    finish(*own);
    std::memset(pair.host->pointer(), 0, pair.size);
    finish(*own, pair.download(*own));
    CHECK(pair.host->pointer()[4095] == static_cast<std::byte>(round));
  }
}

TEST(a_per_thread_stream_is_waited_for_though_it_holds_more) {
  constexpr std::size_t size = std::size_t{32} << 20;
  const auto own = device().default_stream(StreamRole::per_thread);
  Pair pair(device(), *own, size);
  const auto back = Storage::allocate(device(), nullptr, size, MemoryKind::pinned);
  std::memset(pair.host->pointer(), 7, size);
  std::memset(back->pointer(), 0, size);
  Gate first(*own);
  pair.upload(*own);
  const Point point = device().copy(*own, bytes(back->pointer(), size), bytes(pair.memory->pointer(), size),
                                    static_cast<std::int64_t>(size));
  Gate second(*own);
  first.open();
  finish(*own, point);
  CHECK(back->pointer()[size - 1] == std::byte{7});
}

TEST(memory_is_freed_behind_all_its_uses) {
  const auto a = stream(device());
  const auto b = stream(device());
  const std::size_t free_before = device().free_memory();
  for (int round = 0; round < 200; ++round) {
    Pair pair(device(), *a, std::size_t{64} << 20);
    pair.upload(*a);
    device().wait(*b, *a, a->issued());
    pair.download(*b);
  }
  finish(*a);
  finish(*b);
  CHECK(eventually([&] { return device().free_memory() + (std::size_t{256} << 20) > free_before; }));
}

TEST(timing_tells_how_long_a_copy_takes) {
  const auto a = stream(device());
  Pair pair(device(), *a, std::size_t{64} << 20);
  Event begin(device(), {.timing = true});
  Event end(device(), {.timing = true});
  begin.record(*a);
  pair.upload(*a);
  end.record(*a);
  finish(*a);
  const double milliseconds = begin.elapsed(end).value();
  CHECK(milliseconds > 0.1 && milliseconds < 1000);
}

TEST(missing_code_is_an_error) {
  try {
    const char image[] = "no code";
    device().load_library(std::as_bytes(std::span(image)));
    CHECK(!"loaded");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::value);
  }
}

}  // namespace
}  // namespace anabranch::cuda
