// Graphs within graphs that the driver runs: in their turn, in branches and in loops.
#include "graphs.hpp"

namespace anabranch::cuda {
namespace {

using namespace check;

TEST(a_graph_within_comes_in_its_turn_and_takes_new_arguments) {
  const auto a = stream(device());
  Numbers n(device(), *a, 2);
  const Ref<Kernel> kernel = add_kernel(device());
  Recording inner(device());
  inner.add(NodeKind::kernel, add_work(kernel, n.at(0), 1), {});
  inner.add(NodeKind::kernel, add_work(kernel, n.at(1), 2), {});
  Recording outer(device());
  const auto first = outer.add(NodeKind::fill, fill_work(numbers(n.at(0), 1), 10, 1), {});
  const auto second = outer.add(NodeKind::fill, fill_work(numbers(n.at(1), 1), 20, 1), {});
  const auto within = outer.add(NodeKind::graph, make_ref<Work>(nested(inner)), {first, second});
  const auto again = outer.add(NodeKind::graph, make_ref<Work>(nested(inner)), {within});
  outer.add(NodeKind::copy, copy_work(numbers(n.at(0), 1), numbers(n.at(1), 1), 1), {again});
  const auto executable = outer.make();
  for (int round = 0; round < 10; ++round) {
    executable->launch(*a, outer.works);
    CHECK(n.read(*a) == (Ints{24, 24}));
  }
  NestedWork changed = nested(inner);
  changed.works = inner.with({{1, add_work(kernel, n.at(1), 300)}});
  executable->launch(*a, outer.with({{within, make_ref<Work>(changed)}}));
  CHECK(n.read(*a) == (Ints{322, 322}));
  CHECK_EQUAL(executable->builds(), 1U);
  executable->launch(*a, outer.works);
  CHECK(n.read(*a) == (Ints{24, 24}));
}

void need_conditions() {
  device();
  if (!Conditions::exist()) skip("the driver has no conditional nodes");
}

TEST(a_branch_takes_one_of_its_ways) {
  need_conditions();
  const auto a = stream(device());
  Numbers n(device(), *a, 3);
  Numbers flag(device(), *a, 1);
  const Ref<Kernel> kernel = add_kernel(device());
  Recording yes(device());
  yes.add(NodeKind::kernel, add_work(kernel, n.at(0), 1));
  yes.add(NodeKind::fill, fill_work(numbers(flag.at(0), 1), 0, 1));  // what is asked is asked once
  Recording no(device());
  no.add(NodeKind::kernel, add_work(kernel, n.at(1), 1));
  Recording graph(device());
  const auto both = graph.add(NodeKind::branch, make_ref<Work>(nested(yes, flag.at(0), &no)));
  graph.add(NodeKind::kernel, add_all_work(add_kernel(device(), true), n.at(0), 3, 10));
  const auto executable = graph.make();
  for (const std::int32_t value : {1, 0, -5}) {
    flag.set(*a, {value});
    n.set(*a, {0, 0, 0});
    executable->launch(*a, graph.works);
    CHECK(n.read(*a) == (value != 0 ? Ints{11, 10, 10} : Ints{10, 11, 10}));
  }
  NestedWork changed = nested(yes, flag.at(0), &no);
  changed.otherwise_works = no.with({{0, add_work(kernel, n.at(2), 7)}});
  n.set(*a, {0, 0, 0});
  executable->launch(*a, graph.with({{both, make_ref<Work>(changed)}}));
  CHECK(n.read(*a) == (Ints{10, 10, 17}));
  CHECK_EQUAL(executable->builds(), 1U);
}

TEST(a_branch_of_one_way) {
  need_conditions();
  const auto a = stream(device());
  Numbers n(device(), *a, 1);
  Numbers flag(device(), *a, 2);
  Recording yes(device());
  yes.add(NodeKind::kernel, add_work(add_kernel(device()), n.at(0), 1));
  Recording graph(device());
  const auto branch = graph.add(NodeKind::branch, make_ref<Work>(nested(yes, flag.at(0))));
  const auto executable = graph.make();
  executable->launch(*a, graph.works);
  CHECK(n.read(*a) == (Ints{0}));
  flag.set(*a, {1, 0});
  executable->launch(*a, graph.works);
  CHECK(n.read(*a) == (Ints{1}));
  executable->launch(*a, graph.with({{branch, make_ref<Work>(nested(yes, flag.at(1)))}}));
  CHECK(n.read(*a) == (Ints{1}));
  CHECK_EQUAL(executable->builds(), 2U);
}

TEST(a_loop_runs_as_long_as_its_flag_is_set) {
  need_conditions();
  const auto a = stream(device());
  Numbers n(device(), *a, 2);
  Numbers flag(device(), *a, 1);
  const Ref<Kernel> kernel = add_kernel(device());
  Recording body(device());
  body.add(NodeKind::kernel, add_work(kernel, n.at(0), 2), {});
  const auto step = body.add(NodeKind::kernel, add_work(kernel, flag.at(0), -1), {});
  Recording graph(device());
  const auto loop = graph.add(NodeKind::loop, make_ref<Work>(nested(body, flag.at(0))));
  graph.add(NodeKind::copy, copy_work(numbers(n.at(1), 1), numbers(n.at(0), 1), 1));
  const auto executable = graph.make();
  for (const std::int32_t rounds : {5, 0, 1}) {
    flag.set(*a, {rounds});
    n.set(*a, {0, 0});
    executable->launch(*a, graph.works);
    CHECK(n.read(*a) == (Ints{2 * rounds, 2 * rounds}));
  }
  NestedWork changed = nested(body, flag.at(0));
  changed.works = body.with({{step, add_work(kernel, flag.at(0), -2)}});
  flag.set(*a, {10});
  n.set(*a, {0, 0});
  executable->launch(*a, graph.with({{loop, make_ref<Work>(changed)}}));
  CHECK(n.read(*a) == (Ints{10, 10}));
  CHECK_EQUAL(executable->builds(), 1U);
}

TEST(a_graph_may_be_dropped_while_its_loop_runs) {
  need_conditions();
  const auto a = stream(device());
  Numbers n(device(), *a, 1);
  Numbers flag(device(), *a, 1);
  const Ref<Kernel> kernel = add_kernel(device());
  Recording body(device());
  body.add(NodeKind::kernel, add_work(kernel, n.at(0), 2));
  body.add(NodeKind::kernel, add_work(kernel, flag.at(0), -1));
  for (int round = 0; round < 50; ++round) {
    Recording graph(device());
    graph.add(NodeKind::fill, fill_work(numbers(flag.at(0), 1), 10, 1));
    graph.add(NodeKind::loop, make_ref<Work>(nested(body, flag.at(0))));
    graph.make()->launch(*a, graph.works);
  }
  CHECK(n.read(*a) == (Ints{1000}));
}

TEST(a_branch_in_a_loop_in_a_graph) {
  need_conditions();
  const auto a = stream(device());
  Numbers n(device(), *a, 1);
  Numbers flags(device(), *a, 2);
  const Ref<Kernel> kernel = add_kernel(device());
  Recording once(device());
  once.add(NodeKind::kernel, add_work(kernel, n.at(0), 100));
  once.add(NodeKind::fill, fill_work(numbers(flags.at(1), 1), 0, 1));
  Recording body(device());
  body.add(NodeKind::branch, make_ref<Work>(nested(once, flags.at(1))));
  body.add(NodeKind::kernel, add_work(kernel, n.at(0), 1));
  body.add(NodeKind::kernel, add_work(kernel, flags.at(0), -1));
  Recording within(device());
  within.add(NodeKind::loop, make_ref<Work>(nested(body, flags.at(0))));
  Recording graph(device());
  graph.add(NodeKind::fill, fill_work(numbers(flags.at(0), 1), 3, 1));
  graph.add(NodeKind::fill, fill_work(numbers(flags.at(1), 1), 1, 1));
  graph.add(NodeKind::graph, make_ref<Work>(nested(within)));
  const auto executable = graph.make();
  executable->launch(*a, graph.works);
  executable->launch(*a, graph.works);
  CHECK(n.read(*a) == (Ints{206}));
}

}  // namespace
}  // namespace anabranch::cuda
