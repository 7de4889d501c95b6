// Graphs that the driver runs: what they do, where, and for how long.
#include <algorithm>
#include <mutex>
#include <random>
#include <set>

#include "graphs.hpp"
#include "random_layout.hpp"
#include "threads.hpp"

namespace anabranch::cuda {
namespace {

using namespace check;

TEST(a_chain_runs_in_its_order_again_and_again) {
  const auto a = stream(device());
  Numbers n(device(), *a, 4);
  Recording chain(device());
  chain.add(NodeKind::alloc, nullptr);
  chain.add(NodeKind::fill, fill_work(numbers(n.at(0), 2), 5, 2));
  chain.add(NodeKind::kernel, add_work(add_kernel(device()), n.at(1), 2));
  chain.add(NodeKind::copy, copy_work(numbers(n.at(2), 2), numbers(n.at(0), 2), 2));
  chain.add(NodeKind::free, nullptr);
  chain.add(NodeKind::kernel, add_all_work(add_kernel(device(), true), n.at(0), 4, 1));
  const auto executable = chain.make();
  for (int round = 0; round < 3; ++round) {
    const Point before = a->issued();
    CHECK_EQUAL(executable->launch(*a, chain.works), before + 1);
    CHECK(n.read(*a) == (Ints{6, 8, 6, 8}));
    n.set(*a, {0, 0, 0, 0});
  }
  CHECK_EQUAL(executable->builds(), 1U);
}

TEST(a_graph_of_nothing_runs) {
  const auto a = stream(device());
  Recording nothing(device());
  nothing.add(NodeKind::alloc, nullptr);
  const auto executable = nothing.make();
  finish(*a, executable->launch(*a, nothing.works));
  const Recording empty(device());
  finish(*a, empty.make()->launch(*a, empty.works));
}

// A program over a few numbers, each operation after those that it conflicts with and no others.
struct Program {
  explicit Program(std::mt19937& random, Numbers& numbers_, std::size_t count) : model(count), n(numbers_) {
    const Ref<Kernel> kernel = add_kernel(device());
    std::vector<std::vector<std::uint32_t>> readers(count);
    std::vector<std::int64_t> writer(count, -1);
    const auto below = [&random](std::size_t limit) { return random() % limit; };
    for (int i = 0; i < 40; ++i) {
      const std::size_t to = below(count);
      const std::size_t from = below(count);
      const auto value = static_cast<std::int32_t>(below(1000));
      const bool copies = random() % 2 == 0 && to != from;
      std::set<std::uint32_t> after(readers[to].begin(), readers[to].end());
      if (writer[to] >= 0) after.insert(static_cast<std::uint32_t>(writer[to]));
      if (copies && writer[from] >= 0) after.insert(static_cast<std::uint32_t>(writer[from]));
      const std::vector<std::uint32_t> order(after.begin(), after.end());
      std::uint32_t node = 0;
      if (copies) {
        node = recording.add(NodeKind::copy, copy_work(numbers(n.at(to), 1), numbers(n.at(from), 1), 1), order);
        readers[from].push_back(node);
        model[to] = model[from];
      } else if (random() % 8 == 0) {
        node = recording.add(NodeKind::fill, fill_work(numbers(n.at(to), 1), value, 1), order);
        model[to] = value;
      } else {
        node = recording.add(NodeKind::kernel, add_work(kernel, n.at(to), value), order);
        model[to] += value;
      }
      readers[to].clear();
      writer[to] = node;
    }
  }

  Recording recording{device()};
  Ints model;
  Numbers& n;
};

TEST(forks_and_joins_keep_the_order_that_was_recorded) {
  std::mt19937 random(1);
  const auto a = stream(device());
  for (int round = 0; round < 50; ++round) {
    Numbers n(device(), *a, 6);
    const Program program(random, n, 6);
    finish(*a, program.recording.make()->launch(*a, program.recording.works));
    CHECK(n.read(*a) == program.model);
  }
}

TEST(nodes_without_work_pass_their_order_on) {
  const auto a = stream(device());
  Numbers n(device(), *a, 3);
  const Ref<Kernel> kernel = add_kernel(device());
  for (int round = 0; round < 20; ++round) {
    n.set(*a, {0, 0, 0});
    Recording graph(device());
    const auto first = graph.add(NodeKind::fill, fill_work(numbers(n.at(0), 1), 3, 1), {});
    const auto second = graph.add(NodeKind::fill, fill_work(numbers(n.at(1), 1), 4, 1), {});
    const auto freed = graph.add(NodeKind::free, nullptr, {first, second});
    const auto alloc = graph.add(NodeKind::alloc, nullptr, {freed});
    const auto none = graph.add(NodeKind::copy, copy_work(numbers(n.at(2), 1), numbers(n.at(0), 1), 0), {alloc});
    graph.add(NodeKind::copy, copy_work(numbers(n.at(2), 1), numbers(n.at(0), 1), 1), {none});
    graph.add(NodeKind::kernel, add_work(kernel, n.at(1), 1), {none, first});
    finish(*a, graph.make()->launch(*a, graph.works));
    CHECK(n.read(*a) == (Ints{3, 5, 3}));
  }
}

// -- copies and fills --

// A random array on the device, and a model of it on the host.
struct Both {
  Both(std::mt19937& random, Stream& stream, std::int64_t itemsize, Overlap overlap)
      : model(random, itemsize, overlap), pair(device(), stream, std::max<std::size_t>(model.memory.size(), 1)) {
    std::copy(model.memory.begin(), model.memory.end(), pair.host->pointer());
    pair.upload(stream);
  }
  Elements elements(std::int64_t offset) {
    Elements there = model.elements(offset);
    there.pointer = pair.memory->pointer() + (there.pointer - model.memory.data());
    return there;
  }
  bool as_modelled(Stream& stream) {
    finish(stream, pair.download(stream));
    return std::equal(model.memory.begin(), model.memory.end(), pair.host->pointer());
  }

  RandomArray model;
  Pair pair;
};

std::int64_t below(std::mt19937& random, std::int64_t limit) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
}

TEST(copies_of_any_layout) {
  std::mt19937 random(2);
  const auto a = stream(device());
  Recording graph(device());
  graph.add(NodeKind::copy, nullptr);
  Ref<CudaExecutable> executable = graph.make();
  for (int round = 0; round < 500; ++round) {
    const std::int64_t itemsize = 1 << random() % 5;
    Both src(random, *a, itemsize, Overlap::allowed);
    Both dst(random, *a, itemsize, Overlap::none);
    const std::int64_t count = below(random, std::min(src.model.layout.size(), dst.model.layout.size()) + 1);
    const std::int64_t from = below(random, src.model.layout.size() - count + 1);
    const std::int64_t to = below(random, dst.model.layout.size() - count + 1);
    executable->launch(*a, graph.with({{0, copy_work(dst.elements(to), src.elements(from), count)}}));
    copy_elements(dst.model.elements(to), src.model.elements(from), count);
    CHECK(dst.as_modelled(*a));
  }
  CHECK(executable->builds() > 1);
}

TEST(fills_of_any_layout_and_value) {
  std::mt19937 random(3);
  const auto a = stream(device());
  for (int round = 0; round < 500; ++round) {
    const std::int64_t itemsize = 1 << random() % 5;
    Both dst(random, *a, itemsize, Overlap::allowed);
    FillWork fill;
    for (std::byte& byte : fill.value) byte = static_cast<std::byte>(round % 3 == 0 ? 0 : random());
    fill.count = below(random, dst.model.layout.size() + 1);
    const std::int64_t offset = below(random, dst.model.layout.size() - fill.count + 1);
    fill.dst = dst.elements(offset);
    Recording graph(device());
    graph.add(NodeKind::fill, make_ref<Work>(fill));
    graph.make()->launch(*a, graph.works);
    fill_elements(dst.model.elements(offset), fill.value, fill.count);
    CHECK(dst.as_modelled(*a));
  }
}

TEST(copies_to_and_from_pinned_memory) {
  const auto a = stream(device());
  Numbers n(device(), *a, 2);
  Numbers other(device(), *a, 2);
  Recording graph(device());
  graph.add(NodeKind::copy, copy_work(numbers(n.at(0), 2), numbers(n.host(), 2), 2));
  graph.add(NodeKind::kernel, add_all_work(add_kernel(device(), true), n.at(0), 2, 10));
  graph.add(NodeKind::copy, copy_work(numbers(other.host(), 2), numbers(n.at(0), 2), 2));
  const auto executable = graph.make();
  for (int round = 0; round < 3; ++round) {
    n.host()[0] = round;
    n.host()[1] = 2 * round;
    finish(*a, executable->launch(*a, graph.works));
    CHECK_EQUAL(other.host()[0], round + 10);
    CHECK_EQUAL(other.host()[1], 2 * round + 10);
  }
}

// -- what does not run as a whole --

class Nothing final : public HostWork {
 public:
  Ref<HostOperation> make(const Ref<RefCounted>&) noexcept override { return make_ref<HostOperation>(); }
};

TEST(host_functions_and_conditions_that_the_driver_lacks_are_somebody_elses) {
  const auto a = stream(device());
  Numbers n(device(), *a, 1);
  Recording host(device());
  host.add(NodeKind::host, make_ref<Work>(Ref<HostWork>(make_ref<Nothing>())));
  CHECK(!device().instantiate(host.graph, host.works));
  Recording around(device());
  around.add(NodeKind::graph, make_ref<Work>(nested(host)));
  CHECK(!device().instantiate(around.graph, around.works));
  Recording body(device());
  body.add(NodeKind::kernel, add_work(add_kernel(device()), n.at(0), 1));
  Recording branch(device());
  branch.add(NodeKind::branch, make_ref<Work>(nested(body, n.at(0))));
  const Instead old(&Driver::cuGraphConditionalHandleCreate, PFN_cuGraphConditionalHandleCreate_v12030(nullptr));
  CHECK(!device().instantiate(branch.graph, branch.works));
}

TEST(a_kernel_of_another_device_is_refused) {
  const auto a = stream(device());
  Numbers n(device(), *a, 1);
  Recording graph(device());
  graph.add(NodeKind::kernel, add_work(add_kernel(second_device()), n.at(0), 1));
  CHECK_THROWS(Error, device().instantiate(graph.graph, graph.works));
}

// -- two GPUs --

TEST(nodes_of_two_devices) {
  CudaBackend& here = device();
  CudaBackend& there = second_device();
  const auto a = stream(here);
  const auto b = stream(there);
  Numbers mine(here, *a, 2);
  Numbers theirs(there, *b, 2);
  const auto at = [](std::int32_t* pointer, CudaBackend& home, std::int64_t count, std::int64_t step = 1) {
    Elements elements = numbers(pointer, count, step);
    elements.home = &home;
    return elements;
  };
  Recording graph(here);
  const auto first = graph.add(NodeKind::kernel, add_work(add_kernel(here), mine.at(0), 1), {});
  const auto over =
      graph.add(NodeKind::copy, copy_work(at(theirs.at(0), there, 1), at(mine.at(0), here, 1), 1), {first});
  const auto kernel =
      graph.add(NodeKind::kernel, add_all_work(add_kernel(there, true), theirs.at(0), 2, 10), {over}, &there);
  graph.add(NodeKind::copy, copy_work(at(mine.at(1), here, 1), at(theirs.at(0), there, 1), 1), {kernel}, &there);
  const auto executable = graph.make();
  finish(*a, executable->launch(*a, graph.works));
  finish(*b, executable->launch(*b, graph.works));
  CHECK(mine.read(*a) == (Ints{2, 12}));
  CHECK(theirs.read(*b) == (Ints{12, 20}));
  finish(*b, executable->launch(*b, graph.with({{kernel, add_work(add_kernel(there), theirs.at(0), 100)}})));
  CHECK(mine.read(*a) == (Ints{3, 103}));
}

TEST(a_branch_across_devices_is_somebody_elses) {
  const auto a = stream(device());
  Numbers n(device(), *a, 2);
  Numbers other(second_device(), *stream(second_device()), 1);
  Elements far = numbers(other.at(0), 1);
  far.home = &second_device();
  Recording copies(device());
  copies.add(NodeKind::copy, copy_work(numbers(n.at(1), 1), far, 1));
  Recording kernels(device());
  kernels.add(NodeKind::kernel, add_work(add_kernel(second_device()), other.at(0), 1), {}, &second_device());
  for (const Recording* body : {&copies, &kernels}) {
    Recording branch(device());
    branch.add(NodeKind::branch, make_ref<Work>(nested(*body, n.at(0))));
    CHECK(!device().instantiate(branch.graph, branch.works));
  }
}

// -- lives --

TEST(the_stream_knows_the_last_kernel_for_a_fault_that_may_come) {
  const auto a = stream(device());
  Numbers n(device(), *a, 1);
  Recording graph(device());
  graph.add(NodeKind::kernel, add_work(add_kernel(device()), n.at(0), 1));
  graph.add(NodeKind::kernel, add_all_work(add_kernel(device(), true), n.at(0), 1, 1));
  graph.add(NodeKind::fill, fill_work(numbers(n.at(0), 1), 1, 1));
  finish(*a, graph.make()->launch(*a, graph.works));
  CHECK_EQUAL(static_cast<CudaStream&>(*a).take_kernel()->name, "add_all");
}

TEST(an_executable_that_is_dropped_with_a_replay_queued_still_runs) {
  const auto a = stream(device());
  Numbers n(device(), *a, 1);
  Gate gate(*a);
  {
    Recording graph(device());
    graph.add(NodeKind::kernel, add_work(add_kernel(device()), n.at(0), 1));
    graph.make()->launch(*a, graph.works);
  }
  gate.open();
  CHECK(n.read(*a) == (Ints{1}));
  for (int round = 0; round < 50; ++round) {
    Recording graph(device());
    graph.add(NodeKind::kernel, add_work(add_kernel(device()), n.at(0), 1));
    graph.make()->launch(*a, graph.works);
  }
  CHECK(n.read(*a) == (Ints{51}));
}

TEST(a_replay_behind_a_failure_does_not_run) {
  const auto a = stream(device());
  const auto b = stream(device());
  Numbers n(device(), *b, 1);
  Recording graph(device());
  graph.add(NodeKind::kernel, add_work(add_kernel(device()), n.at(0), 1));
  const auto executable = graph.make();
  fail(*a, "broken");
  CHECK_EQUAL(failure_at(*a, executable->launch(*a, graph.works)), "broken");
  finish(*b, executable->launch(*b, graph.works));
  CHECK(n.read(*b) == (Ints{1}));
}

TEST(threads_build_and_launch_graphs_of_their_own_and_one_of_all) {
  const auto a = stream(device());
  constexpr int threads = 4;
  constexpr int rounds = 50;
  Numbers n(device(), *a, threads + 1);
  const Ref<Kernel> kernel = add_kernel(device());
  Recording shared(device());
  shared.add(NodeKind::kernel, add_work(kernel, n.at(threads), 1));
  const auto executable = shared.make();
  std::mutex launching;  // as that of an instance: an executable is launched by one thread at a time
  in_threads(threads, [&](int number) {
    const auto own = stream(device());
    Recording graph(device());
    graph.add(NodeKind::kernel, add_work(kernel, n.at(static_cast<std::size_t>(number)), 1));
    const auto mine = graph.make();
    for (int round = 0; round < rounds; ++round) {
      mine->launch(*own, graph.with({{0, add_work(kernel, n.at(static_cast<std::size_t>(number)), round)}}));
      if (round % 10 == 0) {
        Gate gate(*own);
        mine->launch(*own, graph.works);
      }
      const std::lock_guard one(launching);
      executable->launch(*a, shared.with({{0, add_work(kernel, n.at(threads), 2)}}));
    }
    finish(*own);
  });
  const std::int32_t each = rounds * (rounds - 1) / 2 + rounds / 10;
  CHECK(n.read(*a) == (Ints{each, each, each, each, 2 * threads * rounds}));
}

}  // namespace
}  // namespace anabranch::cuda
