// How graphs that the driver runs take up new arguments.
#include "graphs.hpp"

namespace anabranch::cuda {
namespace {

using namespace check;

TEST(each_replay_has_the_arguments_that_it_was_launched_with) {
  const auto a = stream(device());
  Numbers n(device(), *a, 2);
  const Ref<Kernel> kernel = add_kernel(device());
  Recording graph(device());
  graph.add(NodeKind::kernel, add_work(kernel, n.at(0), 1));
  graph.add(NodeKind::fill, fill_work(numbers(n.at(1), 1), 1, 1));
  const auto executable = graph.make();
  std::int32_t sum = 0;
  for (std::int32_t i = 0; i < 200; ++i) {
    executable->launch(
        *a, graph.with({{0, add_work(kernel, n.at(0), i)}, {1, fill_work(numbers(n.at(1), 1), 1000 + i, 1)}}));
    sum += i;
  }
  CHECK(n.read(*a) == (Ints{sum, 1199}));
  CHECK_EQUAL(executable->builds(), 1U);
}

TEST(a_replay_behind_a_gate_keeps_its_arguments) {
  const auto a = stream(device());
  Numbers n(device(), *a, 3);
  const Ref<Kernel> kernel = add_kernel(device());
  Recording graph(device());
  graph.add(NodeKind::kernel, add_work(kernel, n.at(0), 1));
  graph.add(NodeKind::copy, copy_work(numbers(n.at(1), 1), numbers(n.at(0), 1), 1));
  const auto executable = graph.make();
  Gate gate(*a);
  const Point first = executable->launch(*a, graph.works);
  executable->launch(*a, graph.with({{0, add_work(kernel, n.at(0), 20)},
                                     {1, copy_work(numbers(n.at(2), 1), numbers(n.at(0), 1), 1)}}));
  const Point last = executable->launch(*a, graph.with({{0, add_work(kernel, n.at(0), 300)}}));
  CHECK(!device().query(*a, first));
  gate.open();
  finish(*a, last);
  CHECK(n.read(*a) == (Ints{321, 321, 21}));
  CHECK_EQUAL(executable->builds(), 1U);
}

TEST(the_works_of_before_come_back) {
  const auto a = stream(device());
  Numbers n(device(), *a, 1);
  const Ref<Kernel> kernel = add_kernel(device());
  Recording graph(device());
  graph.add(NodeKind::kernel, add_work(kernel, n.at(0), 1));
  const auto executable = graph.make();
  const Ref<Works> other = graph.with({{0, add_work(kernel, n.at(0), 10)}});
  for (int round = 0; round < 4; ++round) executable->launch(*a, round % 2 == 0 ? other : graph.works);
  CHECK(n.read(*a) == (Ints{22}));
}

TEST(a_change_that_an_instantiated_graph_cannot_take_up_builds_it_anew) {
  const auto a = stream(device());
  Numbers n(device(), *a, 8);
  Recording graph(device());
  graph.add(NodeKind::fill, fill_work(numbers(n.at(0), 4), 7, 4));
  graph.add(NodeKind::kernel, add_all_work(add_kernel(device(), true), n.at(4), 4, 1));
  const auto executable = graph.make();
  finish(*a, executable->launch(*a, graph.works));
  // A kernel instead of the driver's fill; nothing at all; the driver's fill again.
  executable->launch(*a, graph.with({{0, fill_work(numbers(n.at(0), 2, 2), 9, 2)}}));
  CHECK_EQUAL(executable->builds(), 2U);
  executable->launch(*a, graph.with({{0, fill_work(numbers(n.at(0), 4), 9, 0)}}));
  CHECK_EQUAL(executable->builds(), 3U);
  CHECK(n.read(*a) == (Ints{9, 7, 9, 7, 3, 3, 3, 3}));
  executable->launch(*a, graph.works);
  CHECK_EQUAL(executable->builds(), 4U);
  // Attributes of a kernel's node stay as they were instantiated.
  const Ref<Kernel> kernel = add_kernel(device());
  LaunchGrid cooperative;
  cooperative.cooperative = true;
  executable->launch(*a, graph.with({{1, make_ref<Work>(KernelWork{kernel, cooperative, {slot(n.at(4)), slot(5)}})}}));
  CHECK_EQUAL(executable->builds(), 5U);
  CHECK(n.read(*a) == (Ints{7, 7, 7, 7, 9, 4, 4, 4}));
}

TEST(what_was_built_before_may_go_while_its_replays_run) {
  const auto a = stream(device());
  const auto b = stream(device());
  Numbers n(device(), *a, 8);
  Recording graph(device());
  graph.add(NodeKind::fill, fill_work(numbers(n.at(0), 4), 7, 4));
  graph.add(NodeKind::kernel, add_all_work(add_kernel(device(), true), n.at(4), 4, 1));
  const auto executable = graph.make();
  const Ref<Works> other = graph.with({{0, fill_work(numbers(n.at(0), 2, 2), 9, 2)}});
  for (int round = 0; round < 50; ++round) {
    Stream& turn = round < 25 ? *a : *b;
    if (round == 25) device().wait(*b, *a, a->issued(), nullptr);
    executable->launch(turn, round % 2 == 0 ? other : graph.works);
  }
  CHECK_EQUAL(executable->builds(), 51U);
  CHECK(n.read(*b) == (Ints{7, 7, 7, 7, 50, 50, 50, 50}));
}

int changes = 0;
PFN_cuGraphExecKernelNodeSetParams_v12000 change_node = nullptr;

TEST(only_what_changed_is_set_anew) {
  const auto a = stream(device());
  Numbers n(device(), *a, 1);
  const Ref<Kernel> kernel = add_kernel(device());
  Recording graph(device());
  for (int i = 0; i < 10; ++i) graph.add(NodeKind::kernel, add_work(kernel, n.at(0), 1));
  const auto executable = graph.make();
  changes = 0;
  change_node = driver->cuGraphExecKernelNodeSetParams;
  const Instead counted(&Driver::cuGraphExecKernelNodeSetParams,
                        PFN_cuGraphExecKernelNodeSetParams_v12000(
                            [](CUgraphExec in, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters) {
                              ++changes;
                              return change_node(in, node, parameters);
                            }));
  executable->launch(*a, graph.works);
  CHECK_EQUAL(changes, 0);
  const Ref<Works> other = graph.with({{3, add_work(kernel, n.at(0), 100)}});
  executable->launch(*a, other);
  CHECK_EQUAL(changes, 1);
  executable->launch(*a, other);
  executable->launch(*a, graph.with({{3, other->of[3]}}));
  CHECK_EQUAL(changes, 1);
  CHECK(n.read(*a) == (Ints{10 + 3 * 109}));
}

TEST(a_change_that_the_driver_refuses_builds_it_anew) {
  const auto a = stream(device());
  Numbers n(device(), *a, 1);
  const Ref<Kernel> kernel = add_kernel(device());
  Recording graph(device());
  graph.add(NodeKind::kernel, add_work(kernel, n.at(0), 1));
  const auto executable = graph.make();
  {
    const Instead refused(
        &Driver::cuGraphExecKernelNodeSetParams,
        PFN_cuGraphExecKernelNodeSetParams_v12000([](CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS*) {
          return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
        }));
    executable->launch(*a, graph.with({{0, add_work(kernel, n.at(0), 20)}}));
  }
  CHECK_EQUAL(executable->builds(), 2U);
  executable->launch(*a, graph.works);
  CHECK(n.read(*a) == (Ints{21}));
  CHECK_EQUAL(executable->builds(), 2U);
}

TEST(a_change_that_is_an_error_is_told_and_changes_nothing) {
  const auto a = stream(device());
  Numbers n(device(), *a, 2);
  const Ref<Kernel> kernel = add_kernel(device());
  Recording graph(device());
  graph.add(NodeKind::kernel, add_work(kernel, n.at(0), 1));
  graph.add(NodeKind::kernel, add_work(kernel, n.at(1), 2));
  const auto executable = graph.make();
  LaunchGrid too_many;
  too_many.block[0] = 4096;
  const auto wrong = make_ref<Work>(KernelWork{kernel, too_many, {slot(n.at(1)), slot(1)}});
  const Point before = a->issued();
  CHECK_THROWS(DriverError, executable->launch(*a, graph.with({{0, add_work(kernel, n.at(0), 50)}, {1, wrong}})));
  CHECK_EQUAL(a->issued(), before);
  executable->launch(*a, graph.works);
  CHECK(n.read(*a) == (Ints{1, 2}));
  Recording never(device());
  never.add(NodeKind::kernel, wrong);
  CHECK_THROWS(DriverError, device().instantiate(never.graph, never.works));
}

}  // namespace
}  // namespace anabranch::cuda
