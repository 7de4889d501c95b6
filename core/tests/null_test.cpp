// What tests of other things rely on in the null backend.
#include "check.hpp"
#include "gate.hpp"
#include "null/backend.hpp"

namespace anabranch::null {
namespace {

using namespace check;

NullBackend& device() {
  static auto* device = new NullBackend(0, std::size_t{1} << 20);
  return *device;
}

struct Streams {
  Ref<Stream> a = stream(device(), "a");
  Ref<Stream> b = stream(device(), "b");
  Ref<Kernel> kernel = make_ref<Kernel>(nullptr, "saxpy");
  Point launch(const Ref<Stream>& stream) { return device().launch(*stream, *kernel, {}, {}); }
};

TEST(calls_are_remembered_in_order) {
  device().take_calls();
  Streams streams;
  const Point launched = streams.launch(streams.a);
  Event event(device(), {});
  event.record(*streams.a);
  event.wait(*streams.b);
  const Point copied = device().copy(*streams.b, {}, {}, 0);
  CHECK(device().query(*streams.b, copied));
  const std::vector<Call> expected = {
      {"create_stream", "a"},        {"create_stream", "b"},       {"launch", "a", "saxpy", launched},
      {"record", "a", "", launched}, {"wait", "b", "a", launched}, {"copy", "b", "", copied},
      {"query", "b", "", copied},
  };
  CHECK(device().take_calls() == expected);
  CHECK(device().take_calls().empty());
}

TEST(operations_are_complete_at_once) {
  Streams streams;
  for (const auto& stream : {streams.a, streams.b}) CHECK(device().query(*stream, streams.launch(stream)));
  CHECK(device().query(*streams.a, device().wait(*streams.a, *streams.b, streams.b->issued())));
}

TEST(held_operations_are_complete_when_the_test_says_so) {
  static auto* const held = new NullBackend(1, 0);
  held->hold();
  const Log log;
  const auto a = stream(*held, "a");
  const auto b = stream(*held, "b");
  const Point first = check::log(*a, log, "first");
  const Point second = check::log(*a, log, "second");
  const Point wait = held->wait(*b, *a, second);
  held->complete(*b, wait);
  CHECK(log.lines().empty());
  held->complete(*a, first);
  CHECK(log.lines() == Lines{"first"});
  CHECK(held->query(*a, first));
  CHECK(!held->query(*a, second));
  CHECK(!held->query(*b, wait));
  held->complete(*a, second);
  CHECK(held->query(*b, wait));
}

TEST(held_operations_may_fail) {
  static auto* const held = new NullBackend(2, 0);
  held->hold();
  const Log log;
  const auto a = stream(*held, "a");
  const Point first = check::log(*a, log, "first");
  const Point second = check::log(*a, log, "second");
  check::log(*a, log, "third");
  held->complete(*a, first);
  held->fail(*a, make_ref<Failure>("broken"));
  CHECK(log.lines() == (Lines{"first", "no second", "no third"}));
  CHECK_EQUAL(failure_at(*a, first), "");
  CHECK_EQUAL(failure_at(*a, second), "broken");
}

TEST(time_goes_on_by_equal_steps) {
  const auto a = stream(device(), "a");
  Event events[3] = {{device(), {.timing = true}}, {device(), {.timing = true}}, {device(), {.timing = true}}};
  for (Event& event : events) event.record(*a);
  const double step = events[0].elapsed(events[1]).value();
  CHECK(step > 0);
  CHECK_EQUAL(events[1].elapsed(events[2]).value(), step);
}

}  // namespace
}  // namespace anabranch::null
