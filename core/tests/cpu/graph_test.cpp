// Replays of graphs: what runs, and in which order.
#include <algorithm>
#include <latch>
#include <thread>

#include "draft.hpp"

namespace anabranch::cpu {
namespace {

using namespace check;

// Appends one letter, where nothing else does at the same time.
template <char letter>
void write(std::int64_t, std::int64_t, std::string& text) {
  text += letter;
}

void decrement(std::int64_t, std::int64_t, std::int32_t& flag) { --flag; }

TEST(an_empty_graph_runs) {
  CpuBackend& device = make_device(1);
  const auto a = stream(device);
  const Draft draft(device);
  finish(*a, draft.ready()->launch(*a, draft.works));
}

TEST(a_chain_runs_in_order) {
  for (const int workers : {1, 2}) {
    CpuBackend& device = make_device(workers);
    const auto a = stream(device);
    Draft draft(device);
    std::vector<int> order;
    struct Number {
      std::vector<int>& order;
      int number;
    };
    std::vector<Number> numbers;
    for (int i = 0; i < 1000; ++i) numbers.push_back({order, i});
    for (std::uint32_t i = 0; i < 1000; ++i) {
      draft.launch<Number>(
          i == 0 ? Nodes{} : Nodes{i - 1},
          [](std::int64_t, std::int64_t, Number& number) { number.order.push_back(number.number); }, numbers[i]);
    }
    const auto executable = draft.ready();
    for (int replay = 1; replay <= 3; ++replay) {
      finish(*a, executable->launch(*a, draft.works));
      CHECK_EQUAL(order.size(), std::size_t{1000} * static_cast<std::size_t>(replay));
    }
    for (std::size_t i = 0; i < order.size(); ++i) CHECK_EQUAL(order[i], static_cast<int>(i % 1000));
  }
}

TEST(a_replay_is_one_operation_of_its_stream) {
  CpuBackend& device = make_device(2);
  const auto a = stream(device);
  Draft draft(device);
  std::string text;
  const auto first = draft.launch<std::string>({}, &write<'b'>, text);
  const auto nothing = draft.add(NodeKind::alloc, {first});
  draft.launch<std::string>({draft.add(NodeKind::free, {nothing})}, &write<'c'>, text);
  const auto executable = draft.ready();
  launch<std::string>(*a, 1, &write<'a'>, text);
  executable->launch(*a, draft.works);
  finish(*a, launch<std::string>(*a, 1, &write<'d'>, text));
  CHECK_EQUAL(text, "abcd");
  CHECK_EQUAL(a->activity().operations, std::uint64_t{3});
}

TEST(nodes_without_an_order_run_side_by_side) {
  CpuBackend& device = make_device(3);
  const auto a = stream(device);
  Draft draft(device);
  std::latch all_there(3);
  std::string text;
  const auto begin = draft.launch<std::string>({}, &write<'a'>, text);
  Nodes middle;
  for (int i = 0; i < 3; ++i) middle.push_back(draft.call({begin}, [&all_there] { all_there.arrive_and_wait(); }));
  draft.launch<std::string>(middle, &write<'b'>, text);
  finish(*a, draft.ready()->launch(*a, draft.works));
  CHECK_EQUAL(text, "ab");
}

TEST(a_long_kernel_is_split_and_what_follows_sees_all_of_it) {
  for (const int workers : {1, 3}) {
    CpuBackend& device = make_device(workers);
    const auto a = stream(device);
    constexpr std::size_t size = 100'003;
    struct State {
      std::vector<int> counts = std::vector<int>(size);
      int round = 0;
      int wrong = 0;
    } state;
    const auto count = [](std::int64_t begin, std::int64_t end, State& state) {
      for (std::int64_t i = begin; i < end; ++i) {
        ++state.counts[static_cast<std::size_t>(i)];
        for (volatile int wait = 0; wait < 20;) wait = wait + 1;
      }
    };
    const auto verify = [](std::int64_t, std::int64_t, State& state) {
      ++state.round;
      for (const int each : state.counts) state.wrong += each != state.round;
    };
    Draft draft(device);
    Nodes last;
    for (int i = 0; i < 4; ++i) {
      const auto counted = draft.launch<State>(last, count, state, size);
      last = {draft.launch<State>({counted}, verify, state)};
    }
    const auto executable = draft.ready();
    for (int replay = 0; replay < 3; ++replay) executable->launch(*a, draft.works);
    finish(*a);
    CHECK_EQUAL(state.round, 12);
    CHECK_EQUAL(state.wrong, 0);
  }
}

TEST(fills_and_copies_run) {
  CpuBackend& device = make_device(2);
  const auto a = stream(device);
  const std::int64_t size = 2'000'003;
  std::vector<std::int32_t> from(static_cast<std::size_t>(size));
  std::vector<std::int32_t> to(from.size());
  const auto elements = [&size](std::vector<std::int32_t>& of) {
    return Elements{reinterpret_cast<std::byte*>(of.data()), row_major(1, &size, 4)};
  };
  FillWork fill{elements(from), {}, size};
  fill.value[0] = std::byte{7};
  Draft draft(device);
  const auto filled = draft.add(NodeKind::fill, {}, fill);
  draft.add(NodeKind::copy, {filled}, CopyWork{elements(to), elements(from), size});
  finish(*a, draft.ready()->launch(*a, draft.works));
  CHECK(std::all_of(to.begin(), to.end(), [](std::int32_t each) { return each == 7; }));
}

TEST(a_graph_within_runs_in_its_place) {
  CpuBackend& device = make_device(2);
  CpuBackend& other = make_device(1);
  const auto a = stream(device);
  std::string text;
  Draft inner(other);
  inner.launch<std::string>({inner.launch<std::string>({}, &write<'b'>, text)}, &write<'c'>, text);
  Draft outer(device);
  const auto first = outer.nest({outer.launch<std::string>({}, &write<'a'>, text)}, inner);
  // The same graph at two places, and an empty one.
  const auto second = outer.nest({outer.nest({first}, Draft(device))}, inner);
  outer.launch<std::string>({second}, &write<'d'>, text);
  const auto executable = outer.ready();
  for (int replay = 0; replay < 3; ++replay) executable->launch(*a, outer.works);
  finish(*a);
  CHECK_EQUAL(text, "abcbcdabcbcdabcbcd");
}

TEST(a_branch_looks_at_its_flag_when_it_is_reached) {
  CpuBackend& device = make_device(2);
  const auto a = stream(device);
  std::string text;
  std::int32_t flag = 3;
  Draft yes(device);
  yes.launch<std::string>({}, &write<'y'>, text);
  Draft no(device);
  no.launch<std::string>({}, &write<'n'>, text);
  Draft draft(device);
  const auto changed = draft.launch<std::int32_t>({}, &decrement, flag);
  const auto both = draft.branch({changed}, flag, yes, &no);
  const auto one = draft.branch({both}, flag, yes);
  draft.launch<std::string>({one}, &write<'.'>, text);
  const auto executable = draft.ready();
  for (int replay = 0; replay < 4; ++replay) executable->launch(*a, draft.works);
  finish(*a);
  CHECK_EQUAL(text, "yy.yy.n.yy.");
}

TEST(a_loop_runs_for_as_long_as_its_flag_says) {
  for (const int workers : {1, 2}) {
    CpuBackend& device = make_device(workers);
    CpuBackend& other = make_device(1);
    const auto a = stream(device);
    struct State {
      std::int32_t flag = 0;
      std::atomic<int> sum{0};
    } state;
    Draft body(other);
    const auto add = [](std::int64_t, std::int64_t, State& state) { ++state.sum; };
    Nodes added;
    for (int i = 0; i < 3; ++i) added.push_back(body.launch<State>({}, add, state));
    body.add(NodeKind::kernel, added, kernel<std::int32_t>(1, &decrement, state.flag), &device);
    Draft draft(device);
    draft.launch<State>({draft.loop({}, state.flag, body)}, add, state);
    const auto executable = draft.ready();
    for (const int passes : {0, 1, 1000}) {
      state.sum = 0;
      state.flag = passes;
      finish(*a, executable->launch(*a, draft.works));
      CHECK_EQUAL(state.flag, 0);
      CHECK_EQUAL(state.sum.load(), 3 * passes + 1);
    }
  }
}

TEST(loops_nest) {
  CpuBackend& device = make_device(2);
  const auto a = stream(device);
  struct State {
    std::int32_t outer = 5;
    std::int32_t inner = 0;
    std::int32_t even = 0;
    std::string text = {};
  } state;
  Draft dot(device);
  dot.launch<std::string>({}, &write<'.'>, state.text);
  Draft inner(device);
  inner.launch<std::int32_t>({inner.launch<std::string>({}, &write<'i'>, state.text)}, &decrement, state.inner);
  Draft outer(device);
  const auto set = outer.launch<State>(
      {},
      [](std::int64_t, std::int64_t, State& state) {
        state.inner = --state.outer;
        state.even = state.outer % 2 == 0;
      },
      state);
  outer.branch({outer.loop({set}, state.inner, inner)}, state.even, dot);
  Draft draft(device);
  draft.loop({}, state.outer, outer);
  finish(*a, draft.ready()->launch(*a, draft.works));
  CHECK_EQUAL(state.text, "iiii.iiiii.i.");
}

TEST(a_loop_without_a_body_lets_others_run) {
  CpuBackend& device = make_device(1);
  const auto a = stream(device);
  const auto b = stream(device);
  std::int32_t flag = 1;
  struct Both {
    std::int32_t& flag;
  } both{flag};
  Draft draft(device);
  draft.loop({}, flag, Draft(device));
  draft.ready()->launch(*a, draft.works);
  finish(*b, launch<Both>(*b, 1, [](std::int64_t, std::int64_t, Both& both) { both.flag = 0; }, both));
  finish(*a);
}

TEST(kernels_with_blocks_are_refused) {
  CpuBackend& device = make_device(1);
  const auto a = stream(device);
  std::string text;
  Draft inner(device);
  inner.launch<std::string>({}, &write<'a'>, text);
  Draft draft(device);
  draft.nest({}, inner);
  const auto executable = draft.ready();
  KernelWork blocks = kernel<std::string>(1, &write<'b'>, text);
  blocks.grid = LaunchGrid{};
  Draft other(device);
  other.add(NodeKind::kernel, {}, blocks);
  CHECK_THROWS(Error, other.ready());
  auto works = make_ref<Works>();
  works->of = {make_ref<Work>(NestedWork{nullptr, inner.graph, other.works})};
  CHECK_THROWS(Error, executable->launch(*a, works));
  CHECK_EQUAL(a->issued(), Point{0});
}

}  // namespace
}  // namespace anabranch::cpu
