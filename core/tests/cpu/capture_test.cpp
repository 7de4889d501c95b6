// Captures by the core's own calls, in orders that several threads come to.
#include "anabranch/graph/capture.hpp"

#include "draft.hpp"

namespace anabranch::cpu {
namespace {

using namespace check;

// Counts those that there are.
struct Origin final : RefCounted {
  explicit Origin(int& count) : count(count) { ++count; }
  ~Origin() override { --count; }
  int& count;
};

// A capture of two streams.
struct Captured {
  explicit Captured(CpuBackend& device) : a(stream(device)), b(stream(device)), capture(Capture::begin(*a)) {
    Capture::follower(*b, *a->recording());
    wait(*b, *a);
  }

  static void wait(Stream& follower, Stream& target) {
    Stream& recorder = *follower.recording();
    recorder.backend().wait(recorder, *target.recording(), target.recording()->issued());
  }
  // A node that runs nothing.
  Point add(Stream& stream) const {
    return capture->add(*stream.recording(), NodeKind::alloc, "node", std::monostate{});
  }

  Ref<Stream> a;
  Ref<Stream> b;
  Ref<Capture> capture;
};

Touch write_to(Storage& storage) { return {&storage, 0, storage.bytes(), nullptr, 0, Access::write, false}; }

TEST(what_is_said_of_a_node_is_said_of_that_node) {
  for (const bool with_point : {false, true}) {
    CpuBackend& device = make_device(1);
    const Captured captured(device);
    Stream& recorder = *captured.a->recording();
    Ref<Storage> storage = Storage::allocate(device, nullptr, 64, MemoryKind::device);
    const Touch touch = write_to(*storage);
    int count = 0;
    const auto origin = make_ref<Origin>(count);
    const Point point = captured.add(*captured.a);
    // Another thread lets the stream wait, and puts something in.
    Captured::wait(*captured.b, *captured.a);
    captured.add(*captured.b);
    Captured::wait(*captured.a, *captured.b);
    if (with_point) captured.add(*captured.a);
    captured.capture->set_origin(recorder, origin, with_point ? point : 0);
    captured.capture->note(recorder, {&touch, 1}, with_point ? point : 0);
    Ref<Works> works;
    const Ref<Graph> graph = captured.capture->end(works);
    CHECK(graph->nodes.at(0).origin == Ref<RefCounted>(origin));
    for (std::size_t i = 1; i < graph->nodes.size(); ++i) CHECK(!graph->nodes[i].origin);
    CHECK_EQUAL(graph->accesses.touches.size(), 1U);
    CHECK_EQUAL(graph->accesses.touches[0].node, 0U);
  }
}

TEST(where_there_is_no_node_nothing_is_said_of_one) {
  CpuBackend& device = make_device(1);
  const Captured captured(device);
  Ref<Storage> storage = Storage::allocate(device, nullptr, 64, MemoryKind::device);
  const Touch touch = write_to(*storage);
  int count = 0;
  captured.capture->set_origin(*captured.b->recording(), make_ref<Origin>(count));
  captured.capture->note(*captured.b->recording(), {&touch, 1});
  CHECK_EQUAL(count, 0);
  Ref<Works> works;
  CHECK(captured.capture->end(works)->accesses.touches.empty());
}

TEST(a_capture_that_is_abandoned_lets_go_of_its_nodes) {
  CpuBackend& device = make_device(1);
  const Captured captured(device);
  int count = 0;
  captured.add(*captured.a);
  captured.capture->set_origin(*captured.a->recording(), make_ref<Origin>(count));
  const Ref<Stream> kept = Ref<Stream>::share(captured.a->recording());
  CHECK_EQUAL(count, 1);
  captured.capture->abandon("enough");
  CHECK_EQUAL(count, 0);
  CHECK_THROWS(Error, captured.capture->add(*kept, NodeKind::alloc, "node", std::monostate{}));
  captured.capture->set_origin(*kept, make_ref<Origin>(count));
  CHECK_EQUAL(count, 0);
}

TEST(temporary_memory_does_not_lengthen_clocks) {
  CpuBackend& device = make_device(1);
  const Captured captured(device);
  Stream& recorder = *captured.a->recording();
  const std::size_t before = recorder.lane().past().clock.size();
  Ref<Storage> temporary;
  for (int i = 0; i < 100; ++i) {
    temporary = Storage::allocate(recorder.backend(), &recorder, 64, MemoryKind::device);
    const Touch touch = write_to(*temporary);
    captured.add(*captured.a);
    captured.capture->note(recorder, {&touch, 1});
  }
  temporary.reset();
  CHECK_EQUAL(recorder.lane().past().clock.size(), before);
  Ref<Works> works;
  // Two blocks take turns.
  CHECK_EQUAL(captured.capture->end(works)->memory.size(), 2U);
}

TEST(a_body_of_a_capture_that_has_ended_is_refused) {
  CpuBackend& device = make_device(1);
  const Captured captured(device);
  const int before = captures.load();
  const Ref<Stream> kept = Ref<Stream>::share(captured.a->recording());
  captured.capture->abandon("enough");
  CHECK_THROWS(Error, Capture::begin(*kept, captured.capture));
  CHECK_EQUAL(captures.load(), before - 1);
  CHECK(!captured.a->recording());
}

TEST(what_a_body_begins_again_outside_stays_captured_when_the_body_ends) {
  CpuBackend& device = make_device(1);
  const Captured captured(device);
  const Ref<Capture> body = Capture::begin(*captured.a->recording(), captured.capture);
  captured.capture->abandon("enough");
  CHECK(!captured.a->recording());
  const Ref<Capture> next = Capture::begin(*captured.a);
  body->abandon("enough");
  CHECK(captured.a->recording() && captured.a->recording()->capture() == next.get());
  next->abandon("enough");
  CHECK(!captured.a->recording());
}

}  // namespace
}  // namespace anabranch::cpu
