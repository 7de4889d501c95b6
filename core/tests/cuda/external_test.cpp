// Work that another library puts into streams: its order with ours, also behind what a stream holds, and in graphs.
#include "anabranch/error.hpp"
#include "gate.hpp"
#include "graphs.hpp"

namespace anabranch::cuda {
namespace {

using namespace check;

// A library that copies numbers.
class Copy final : public ExternalWork {
 public:
  Copy(std::int32_t* to, const std::int32_t* from, std::size_t count, int status = 0)
      : ExternalWork("copying"), to_(to), from_(from), count_(count), status_(status) {}
  void enqueue(std::uintptr_t stream) override {
    ++calls;
    if (status_ != 0) throw Error(ErrorKind::collective, "the library refuses");
    const auto address = [](const std::int32_t* pointer) { return static_cast<CUdeviceptr>(slot(pointer)); };
    device().check(driver->cuMemcpyAsync(address(to_), address(from_), 4 * count_, reinterpret_cast<CUstream>(stream)),
                   "copying");
  }

  int calls = 0;

 private:
  std::int32_t* to_;
  const std::int32_t* from_;
  std::size_t count_;
  int status_;
};

Point fill(Stream& stream, std::int32_t* to, std::int64_t count, std::int32_t value) {
  return device().fill(stream, numbers(to, count), &value, count);
}

TEST(it_comes_after_what_the_stream_holds) {
  const auto a = stream(device());
  Numbers n(device(), *a, 4);
  const auto work = make_ref<Copy>(n.at(2), n.at(0), 2);
  device().external(*a, work);
  CHECK_EQUAL(work->calls, 1);
  Gate gate(*a);
  fill(*a, n.at(0), 2, 7);
  const Point point = device().external(*a, work);
  const Point after = fill(*a, n.at(0), 2, 1);
  CHECK_EQUAL(work->calls, 1);
  CHECK(!device().query(*a, point));
  gate.open();
  finish(*a, after);
  CHECK_EQUAL(work->calls, 2);
  CHECK(n.read(*a) == (Ints{1, 1, 7, 7}));
}

TEST(what_the_library_refuses_is_not_enqueued) {
  const auto a = stream(device());
  Numbers n(device(), *a, 2);
  const Point before = a->issued();
  CHECK_THROWS(Error, device().external(*a, make_ref<Copy>(n.at(1), n.at(0), 1, 1)));
  CHECK_EQUAL(a->issued(), before);
}

TEST(a_refusal_behind_a_gate_fails_the_stream) {
  const auto a = stream(device());
  Numbers n(device(), *a, 2);
  Gate gate(*a);
  const Point point = device().external(*a, make_ref<Copy>(n.at(1), n.at(0), 1, 1));
  fill(*a, n.at(0), 2, 3);
  gate.open();
  bool failed = false;
  try {
    finish(*a, point);
  } catch (const AsyncError& error) {
    failed = error.failure()->message().find("the library refuses") != std::string::npos;
  }
  CHECK(failed);
}

TEST(a_graph_captures_it_once) {
  const auto a = stream(device());
  Numbers n(device(), *a, 4);
  const auto work = make_ref<Copy>(n.at(2), n.at(0), 2);
  Recording chain(device());
  chain.add(NodeKind::fill, fill_work(numbers(n.at(0), 2), 5, 2));
  chain.add(NodeKind::external, make_ref<Work>(Ref<ExternalWork>(work)));
  chain.add(NodeKind::kernel, add_work(add_kernel(device()), n.at(3), 1));
  chain.add(NodeKind::fill, fill_work(numbers(n.at(0), 1), 8, 1));
  const auto executable = chain.make();
  for (int round = 0; round < 3; ++round) {
    executable->launch(*a, chain.works);
    CHECK(n.read(*a) == (Ints{8, 5, 5, 6}));
    n.set(*a, {0, 0, 0, 0});
  }
  CHECK_EQUAL(work->calls, 1);
  CHECK_EQUAL(executable->builds(), 1U);

  const auto other = make_ref<Copy>(n.at(2), n.at(0), 1);
  executable->launch(*a, chain.with({{1, make_ref<Work>(Ref<ExternalWork>(other))}}));
  CHECK(n.read(*a) == (Ints{8, 5, 5, 1}));
  CHECK_EQUAL(executable->builds(), 2U);
}

TEST(a_graph_of_what_the_library_refuses_is_not_made) {
  const auto a = stream(device());
  Numbers n(device(), *a, 2);
  Recording chain(device());
  chain.add(NodeKind::external, make_ref<Work>(Ref<ExternalWork>(make_ref<Copy>(n.at(1), n.at(0), 1, 1))));
  CHECK_THROWS(Error, chain.make());
  fill(*a, n.at(0), 2, 4);
  CHECK(n.read(*a) == (Ints{4, 4}));
}

TEST(an_unrolled_graph_runs_it_in_each_replay) {
  const auto a = stream(device());
  Numbers n(device(), *a, 2);
  const auto work = make_ref<Copy>(n.at(1), n.at(0), 1);
  Recording chain(device());
  chain.add(NodeKind::fill, fill_work(numbers(n.at(0), 1), 6, 1));
  chain.add(NodeKind::external, make_ref<Work>(Ref<ExternalWork>(work)));
  const auto unrolled = make_graph_fallback(chain.graph);
  for (int round = 1; round <= 3; ++round) {
    finish(*a, unrolled->launch(*a, chain.works));
    CHECK_EQUAL(work->calls, round);
  }
  CHECK(n.read(*a) == (Ints{6, 6}));
}

}  // namespace
}  // namespace anabranch::cuda
