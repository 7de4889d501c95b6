// An operation's way into a stream, on devices that run nothing: what each step does, and what it leaves behind.
#include "anabranch/hazard/submission.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "anabranch/graph/capture.hpp"
#include "anabranch/hazard/external_use.hpp"
#include "gate.hpp"
#include "program.hpp"

namespace anabranch {
namespace {

using namespace check;

// Two streams, of which `a`, held back, has written to the block.
struct Scene {
  Ref<HostTask> task = make_ref<HostTask>();
  Ref<Stream> a = stream(device(), "a");
  Ref<Stream> b = stream(device(), "b");
  Ref<Storage> x = block();
  Gate gate{*a};

  explicit Scene(HazardMode mode = HazardMode::automatic) {
    submit(*a, Access::write, mode);
    null_device().take_calls();
  }
  Touch touch(Access access) const { return {x.get(), 0, 64, nullptr, 0, access, false}; }
  void submit(Stream& stream, Access access, HazardMode mode) {
    const Touch touches[] = {touch(access)};
    Submission submission(stream, mode, touches);
    CHECK(!submission.begin(*task, nullptr));
    submission.commit(device().fill(stream, {}, nullptr, 1), {});
  }
  // The accesses that a write to the block has to come after.
  std::size_t uses() const { return x->uses(Access::write, {0, 64}).size(); }
};

// What was put into streams since the last time this was asked.
std::vector<null::Call> enqueued() {
  std::vector<null::Call> calls = null_device().take_calls();
  std::erase_if(calls, [](const null::Call& call) { return call.verb != "wait" && call.verb != "fill"; });
  return calls;
}

std::size_t waits() {
  const std::vector<null::Call> calls = enqueued();
  return static_cast<std::size_t>(
      std::count_if(calls.begin(), calls.end(), [](const null::Call& call) { return call.verb == "wait"; }));
}

TEST(auto_adds_exactly_one_wait) {
  Scene scene;
  const std::uint64_t before = added_waits();
  scene.submit(*scene.b, Access::read, HazardMode::automatic);
  const std::vector<null::Call> calls = enqueued();
  CHECK_EQUAL(calls.size(), std::size_t{2});
  CHECK(calls[0] == (null::Call{"wait", "b", "a", 2}));
  CHECK_EQUAL(calls[1].verb, std::string("fill"));
  CHECK_EQUAL(added_waits(), before + 1);
  // In order from now on.
  scene.submit(*scene.b, Access::read, HazardMode::automatic);
  CHECK_EQUAL(waits(), std::size_t{0});
}

TEST(auto_waits_once_for_what_several_touches_lack) {
  Scene scene;
  const auto y = block();
  const Touch second{y.get(), 0, 64, nullptr, 0, Access::write, false};
  {
    Submission submission(*scene.a, HazardMode::automatic, {&second, 1});
    CHECK(!submission.begin(*scene.task, nullptr));
    submission.commit(device().fill(*scene.a, {}, nullptr, 1), {});
  }
  null_device().take_calls();
  const Touch touches[] = {scene.touch(Access::read), second};
  Submission submission(*scene.b, HazardMode::automatic, touches);
  CHECK(!submission.begin(*scene.task, nullptr));
  const std::vector<null::Call> calls = enqueued();
  CHECK_EQUAL(calls.size(), std::size_t{1});
  CHECK(calls[0] == (null::Call{"wait", "b", "a", 3}));
}

TEST(auto_tells_the_stream_what_the_task_knows) {
  Scene scene;
  scene.task->lane.follow(scene.a->lane().past());
  scene.submit(*scene.b, Access::write, HazardMode::automatic);
  CHECK_EQUAL(waits(), std::size_t{0});
}

TEST(check_refuses_and_nothing_is_enqueued_nor_known) {
  Scene scene;
  const Touch touches[] = {scene.touch(Access::write)};
  const std::size_t uses = scene.uses();
  const Lane::Version known = scene.b->lane().version();
  // What the task knows, the stream must not learn from an operation that is refused.
  scene.task->lane.follow(stream(device())->lane().advance());
  {
    Submission submission(*scene.b, HazardMode::check, touches);
    const auto refusal = submission.begin(*scene.task, nullptr);
    CHECK(refusal);
    CHECK_EQUAL(refusal->races.size(), std::size_t{1});
    CHECK(refusal->races[0].first.stream == scene.a);
    CHECK_EQUAL(refusal->races[0].second, std::size_t{0});
    CHECK(refusal->touches[0].storage == scene.x.get());
    CHECK(refusal->stream == scene.b);
  }
  CHECK(enqueued().empty());
  CHECK_EQUAL(scene.b->lane().version(), known);
  CHECK_EQUAL(scene.b->issued(), Point{0});
  CHECK_EQUAL(scene.uses(), uses);
}

TEST(check_lets_pass_what_is_in_order) {
  Scene scene;
  scene.b->lane().follow(scene.a->lane().past());
  scene.submit(*scene.b, Access::write, HazardMode::check);
  CHECK_EQUAL(waits(), std::size_t{0});
}

TEST(check_tells_the_stream_what_the_task_knows) {
  Scene scene;
  const auto c = stream(device());
  const Moment known = c->lane().advance();
  scene.task->lane.follow(known);
  // Alone with its memory, and beside another's accesses.
  const auto y = block();
  const Touch alone[] = {{y.get(), 0, 64, nullptr, 0, Access::write, false}};
  Submission first(*scene.b, HazardMode::check, alone);
  CHECK(!first.begin(*scene.task, nullptr));
  CHECK(scene.b->lane().past().covers(known));
  const auto d = stream(device());
  scene.task->lane.follow(scene.a->lane().past());
  const Touch beside[] = {scene.touch(Access::write)};
  Submission second(*d, HazardMode::check, beside);
  CHECK(!second.begin(*scene.task, nullptr));
  CHECK(d->lane().past().covers(known));
}

TEST(check_waits_for_what_ran_unnoticed) {
  Scene scene(HazardMode::off);
  scene.submit(*scene.b, Access::read, HazardMode::check);
  CHECK_EQUAL(waits(), std::size_t{1});
}

TEST(a_race_that_was_reported_may_go_ahead) {
  Scene scene;
  const Touch touches[] = {scene.touch(Access::write)};
  Submission submission(*scene.b, HazardMode::check, touches);
  const auto refusal = submission.begin(*scene.task, nullptr);
  CHECK(refusal);
  CHECK(submission.proceed(*scene.task, *refusal));
  submission.commit(device().fill(*scene.b, {}, nullptr, 1), {});
  CHECK_EQUAL(waits(), std::size_t{0});
  CHECK_EQUAL(scene.uses(), std::size_t{2});
}

TEST(a_race_that_goes_ahead_tells_the_stream_what_the_task_knows) {
  Scene scene;
  const Moment known = stream(device())->lane().advance();
  scene.task->lane.follow(known);
  const Touch touches[] = {scene.touch(Access::write)};
  Submission submission(*scene.b, HazardMode::check, touches);
  const auto refusal = submission.begin(*scene.task, nullptr);
  CHECK(refusal);
  CHECK(!scene.b->lane().past().covers(known));
  CHECK(submission.proceed(*scene.task, *refusal));
  CHECK(scene.b->lane().past().covers(known));
}

TEST(a_race_that_goes_ahead_waits_for_what_ran_unnoticed) {
  Scene scene(HazardMode::off);
  const auto y = block();
  const auto c = stream(device());
  const Gate held(*c);
  const Touch second{y.get(), 0, 64, nullptr, 0, Access::write, false};
  {
    Submission submission(*c, HazardMode::check, {&second, 1});
    CHECK(!submission.begin(*scene.task, nullptr));
    submission.commit(device().fill(*c, {}, nullptr, 1), {});
  }
  const Touch touches[] = {scene.touch(Access::write), second};
  Submission submission(*scene.b, HazardMode::check, touches);
  const auto refusal = submission.begin(*scene.task, nullptr);
  CHECK(refusal);
  CHECK_EQUAL(refusal->races.size(), std::size_t{1});
  null_device().take_calls();
  CHECK(submission.proceed(*scene.task, *refusal));
  CHECK_EQUAL(waits(), std::size_t{1});  // for the first stream, of which nothing is reported
}

TEST(auto_waits_for_what_is_lent) {
  Scene scene;
  const auto y = block();
  const Ref<ExternalUse> use = ExternalUse::open(scene.a);
  ExternalUse::lend(*scene.a, *y, {0, 64});
  const Touch touches[] = {{y.get(), 0, 64, nullptr, 0, Access::write, false}};
  for (int round = 0; round < 2; ++round) {  // who has it may have enqueued something since the last time
    null_device().take_calls();
    Submission submission(*scene.b, HazardMode::automatic, touches);
    CHECK(!submission.begin(*scene.task, nullptr));
    submission.commit(device().fill(*scene.b, {}, nullptr, 1), {});
    CHECK_EQUAL(waits(), std::size_t{1});
  }
  use->close(HazardMode::automatic, {});
}

TEST(memory_that_is_given_up_while_a_race_is_reported_is_kept_and_the_operation_refused) {
  Scene scene;
  const Touch touches[] = {scene.touch(Access::write)};
  Submission submission(*scene.b, HazardMode::check, touches);
  auto refusal = submission.begin(*scene.task, nullptr);
  Storage* const kept = scene.x.get();
  scene.x.reset();
  CHECK_EQUAL(kept->bytes(), std::size_t{64});
  null_device().take_calls();
  CHECK(!submission.proceed(*scene.task, *refusal));
  refusal.reset();
  CHECK_EQUAL(null_device().take_calls().at(0).verb, std::string("free"));
}

TEST(off_notes_only) {
  Scene scene;
  const Lane::Version known = scene.b->lane().version();
  scene.task->lane.follow(stream(device())->lane().advance());
  scene.submit(*scene.b, Access::write, HazardMode::off);
  CHECK_EQUAL(enqueued().size(), std::size_t{1});  // the operation itself
  CHECK_EQUAL(scene.b->lane().version(), known);
  // For whoever frees the memory or uses it next, of no known moment.
  const std::vector<Use> uses = scene.x->uses(Access::write, {0, 64});
  CHECK_EQUAL(uses.size(), std::size_t{2});
  CHECK(std::any_of(uses.begin(), uses.end(), [&](const Use& use) { return use.stream == scene.b && !use.when.lane; }));
}

TEST(an_exception_before_commit_leaves_no_access) {
  Scene scene;
  const std::size_t uses = scene.uses();
  const Point count = scene.b->lane().past().count;
  try {
    const Touch touches[] = {scene.touch(Access::write)};
    Submission submission(*scene.b, HazardMode::automatic, touches);
    CHECK(!submission.begin(*scene.task, nullptr));
    throw std::runtime_error("the device refuses");
  } catch (const std::runtime_error&) {
  }
  CHECK_EQUAL(scene.uses(), uses);
  CHECK_EQUAL(scene.b->lane().past().count, count);
  // The wait stays, and is not made again.
  CHECK_EQUAL(waits(), std::size_t{1});
  scene.submit(*scene.b, Access::write, HazardMode::automatic);
  CHECK_EQUAL(waits(), std::size_t{0});
}

TEST(an_access_that_is_in_order_already_is_noted_with_no_wait) {
  Scene scene;
  const Touch touches[] = {scene.touch(Access::write)};
  Submission submission(*scene.b, HazardMode::automatic, touches);
  submission.begin_in_order();
  submission.commit(device().fill(*scene.b, {}, nullptr, 1), {});
  CHECK_EQUAL(waits(), std::size_t{0});
  CHECK_EQUAL(scene.uses(), std::size_t{2});
}

TEST(an_access_that_is_in_order_already_comes_after_what_its_stream_knew) {
  Scene scene;
  const Moment known = stream(device())->lane().advance();
  scene.b->lane().follow(known);
  const auto y = block();
  const Touch touches[] = {{y.get(), 0, 64, nullptr, 0, Access::write, false}};
  Submission submission(*scene.b, HazardMode::automatic, touches);
  submission.begin_in_order();
  submission.commit(device().fill(*scene.b, {}, nullptr, 1), {});
  CHECK(y->uses(Access::write, {0, 64}).at(0).when.follows(known));
}

TEST(what_others_tell_the_stream_meanwhile_the_operation_does_not_come_after) {
  Scene scene;
  const auto y = block();
  const auto c = stream(device());
  const Moment other = c->lane().advance();
  const Moment known = stream(device())->lane().advance();
  scene.b->lane().follow(known);
  const Touch touches[] = {{y.get(), 0, 64, nullptr, 0, Access::write, false}};
  Submission submission(*scene.b, HazardMode::automatic, touches);
  CHECK(!submission.begin(*scene.task, nullptr));
  const Point point = device().fill(*scene.b, {}, nullptr, 1);
  scene.b->lane().follow(other);
  submission.commit(point, {});
  const Moment when = y->uses(Access::write, {0, 64}).at(0).when;
  CHECK(when.follows(known));
  CHECK(!when.follows(other));
}

TEST(a_call_knows_what_it_comes_after_and_is_noted_at_its_moment) {
  Scene scene;
  const Moment known = stream(device())->lane().advance();
  scene.task->lane.follow(known);
  const auto y = block();
  const Touch touches[] = {{y.get(), 0, 64, nullptr, 0, Access::write, false}};
  Submission submission(*scene.b, HazardMode::automatic, touches);
  CHECK(!submission.begin(*scene.task, nullptr));
  CHECK(submission.past().covers(known));
  const Point point = call(*scene.b, [] {});
  const Moment moment = submission.advance();
  submission.commit_call(point, {}, moment);
  const std::vector<Use> uses = y->uses(Access::read, {0, 64});
  CHECK_EQUAL(uses.size(), std::size_t{1});
  CHECK_EQUAL(uses[0].when.count, moment.count);
}

TEST(in_a_capture_what_stands_for_the_memory_is_ordered_and_the_capture_knows_the_access) {
  Scene scene;
  const Ref<Capture> capture = Capture::begin(*scene.b);
  Stream& recorder = Capture::recorder_of(*scene.b);
  const Touch touches[] = {scene.touch(Access::write)};
  const std::size_t uses = scene.uses();
  null_device().take_calls();
  Submission submission(recorder, HazardMode::check, touches);
  CHECK(!submission.begin(*scene.task, capture.get()));  // of what is outside nothing is known within
  const std::int32_t value = 0;
  const std::int64_t count = 16;
  const Elements elements{scene.x->pointer(), row_major(1, &count, sizeof(value)), 0, &device()};
  submission.commit(recorder.backend().fill(recorder, elements, &value, count), {});
  CHECK(null_device().take_calls().empty());
  CHECK_EQUAL(scene.uses(), uses);
  CHECK(capture->writes(*scene.x));
  Ref<Works> works;
  const Ref<Graph> graph = capture->end(works);
  CHECK_EQUAL(graph->accesses.touches.size(), std::size_t{1});
}

TEST(nothing_goes_beside_a_capture_that_is_exclusive) {
  Scene scene;
  const Ref<Capture> capture = Capture::begin(*scene.b);
  capture->make_exclusive();
  const Touch touches[] = {scene.touch(Access::read)};
  Submission submission(*scene.a, HazardMode::automatic, touches);
  CHECK_THROWS(Error, submission.begin(*scene.task, capture.get()));
  CHECK(!capture->active());
}

TEST(a_capture_that_has_ended_takes_no_operation) {
  Scene scene;
  const Ref<Capture> capture = Capture::begin(*scene.b);
  Stream& recorder = Capture::recorder_of(*scene.b);
  capture->abandon("no reason");
  const Touch touches[] = {scene.touch(Access::read)};
  Submission submission(recorder, HazardMode::automatic, touches);
  CHECK_THROWS(Error, submission.begin(*scene.task, capture.get()));
}

}  // namespace
}  // namespace anabranch
