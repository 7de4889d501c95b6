// The runs of optimal partial-order reduction, against all runs of a model.
#include "explore/dpor.hpp"

#include "check.hpp"
#include "machine.hpp"

namespace anabranch::explore {
namespace {

struct Explored {
  std::set<std::string> classes;
  std::size_t fresh = 0;
  std::size_t runs = 0;
};

Explored explore(const Program& program) {
  Explored explored;
  Dpor dpor;
  Run run;
  while (dpor.more()) {
    Machine machine(program);
    run.clear();
    dpor.begin();
    while (!machine.over()) {
      const auto steps = machine.possible();
      const auto choice = dpor.choose(steps);
      CHECK(choice.has_value());
      machine.happen(steps[*choice], &run);
    }
    explored.classes.insert(machine.signature());
    ++explored.runs;
    explored.fresh += dpor.end(run);
  }
  return explored;
}

void check_classes(const Program& program, std::size_t classes) {
  const Explored explored = explore(program);
  CHECK_EQUAL(explored.classes.size(), classes);
  CHECK_EQUAL(explored.fresh, classes);
  CHECK_EQUAL(explored.runs, classes);
}

Action kernel(Process stream, std::vector<MemoryUse> uses) { return {.stream = stream, .uses = std::move(uses)}; }
constexpr Access in = Access::read;
constexpr Access out = Access::write;

TEST(two_writes_in_conflict_are_two_classes) { check_classes({kernel(1, {use(0, out)}), kernel(2, {use(0, out)})}, 2); }

TEST(three_writes_in_conflict_are_six_classes) {
  check_classes({kernel(1, {use(0, out)}), kernel(2, {use(0, out)}), kernel(3, {use(0, out)})}, 6);
}

TEST(independent_operations_are_one_class) {
  Program program;
  for (Process stream = 1; stream <= 10; ++stream) program.push_back(kernel(stream, {use(stream, out)}));
  check_classes(program, 1);
}

TEST(readers_are_one_class) { check_classes({kernel(1, {use(0, in)}), kernel(2, {use(0, in)})}, 1); }

TEST(bytes_that_do_not_overlap_are_one_class) {
  check_classes({kernel(1, {use(0, out, 0, 4)}), kernel(2, {use(0, out, 4, 8)})}, 1);
}

TEST(a_stream_is_in_order) { check_classes({kernel(1, {use(0, out)}), kernel(1, {use(0, out)})}, 1); }

TEST(a_writer_and_n_readers_are_two_to_the_n_classes) {
  Program program{kernel(1, {use(0, out)})};
  for (Process stream = 2; stream <= 5; ++stream) program.push_back(kernel(stream, {use(0, in)}));
  check_classes(program, 16);
}

TEST(a_wait_is_order) {
  check_classes(
      {kernel(1, {use(0, out)}), {.kind = Action::Kind::wait, .stream = 2, .operation = 0}, kernel(2, {use(0, out)})},
      1);
}

TEST(a_query_has_two_answers) {
  check_classes({kernel(1, {}), {.kind = Action::Kind::query, .operation = 0}}, 2);
  check_classes({kernel(1, {}),
                 {.kind = Action::Kind::synchronize, .operation = 0},
                 {.kind = Action::Kind::query, .operation = 0}},
                1);
}

TEST(the_classes_of_random_programs_are_those_of_all_runs) {
  std::mt19937 random(21);
  const auto below = [&random](std::size_t bound) { return random() % bound; };
  for (int i = 0; i < 4000; ++i) {
    Program program;
    const std::size_t streams = 2 + below(3);
    const std::size_t length = 3 + below(4);
    for (std::size_t j = 0; j < length; ++j) {
      const std::size_t kind = below(10);
      Action action;
      action.stream = static_cast<Process>(1 + below(streams));
      action.operation = below(8);
      if (kind < 6) {
        for (std::size_t uses = 1 + below(2); uses > 0; --uses) {
          const std::size_t low = 4 * below(2);
          action.uses.push_back(
              use(static_cast<std::uint32_t>(below(2)), below(2) == 0 ? in : out, low, low + 4 + 4 * below(2)));
        }
      } else {
        action.kind = kind < 8 ? Action::Kind::query : kind == 8 ? Action::Kind::wait : Action::Kind::synchronize;
        action.skips = below(2) == 0;
      }
      program.push_back(action);
    }
    const std::set<std::string> all = classes_of(program);
    const Explored explored = explore(program);
    CHECK_EQUAL(explored.classes.size(), all.size());
    CHECK(explored.classes == all);
    CHECK_EQUAL(explored.fresh, all.size());
    CHECK_EQUAL(explored.runs, all.size());
  }
}

}  // namespace
}  // namespace anabranch::explore
