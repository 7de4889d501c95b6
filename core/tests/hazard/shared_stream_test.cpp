// What is known of operations where threads share a stream, and are between enqueuing and noting at the same time. Each
// test is two threads' calls in the order in which they may come.
#include "gate.hpp"
#include "program.hpp"

namespace anabranch {
namespace {

using namespace check;

// What most tests of the legacy stream begin with.
struct LegacySetting {
  Program program;
  const Ref<Stream> legacy = device().default_stream(StreamRole::legacy);
  const Ref<Stream> a = blocking();
  const Ref<Storage> x = block();
  const Ref<Storage> y = block();
};

// An operation of another thread that is in its stream, and not noted yet.
class Enqueued {
 public:
  explicit Enqueued(Stream& stream) : stream_(stream) {
    Ordering(stream, task_->lane).begin();
    snapshot_ = stream.lane().snapshot();
    point_ = call(stream, [] {});
  }

  void note(const Ref<Storage>& storage, Access access) {
    const Touch touch{storage.get(), 0, 64, nullptr, 0, access, false};
    Ordering::note(stream_, point_, {&touch, 1}, HazardMode::automatic, {}, snapshot_);
  }

 private:
  const Ref<HostTask> task_ = make_ref<HostTask>();
  Stream& stream_;
  Lane::Version snapshot_ = 0;
  Point point_ = 0;
};

// Brings a stream's lane up to date for an operation that does not come.
void begin(Stream& stream) {
  const Ref<HostTask> task = make_ref<HostTask>();
  Ordering(stream, task->lane).begin();
}

// The moment of the one operation that uses it.
Moment newest(const Ref<Storage>& storage) { return storage->uses(Access::write, {0, 64})[0].when; }

// Whether who looks at the stream, and finds it complete, knows that operation to be over.
bool is_settled(const Stream& stream, const Ref<Storage>& storage) {
  const Moment when = newest(storage);
  return stream.lane().settled().clock.covers(when.lane->value, when.count);
}

TEST_IN(Setting, an_operation_does_not_come_after_what_its_stream_is_told_once_it_is_in) {
  const Gate gate(*b);
  program.access(*b, x, Access::write);
  const Moment when = newest(x);
  Moment own;
  const Lane::Version snapshot = a->lane().snapshot();
  enqueue_wait(*a, *b, b->issued(), nullptr, true);
  a->lane().follow(when);
  a->lane().advance(own, snapshot);
  CHECK(!own.clock.covers(when.lane->value, when.count));
  CHECK(a->lane().past().covers(when));
  a->lane().advance(own, a->lane().snapshot());
  CHECK(own.clock.covers(when.lane->value, when.count));
}

TEST_IN(Setting, an_operation_comes_after_what_it_waited_for_itself_whatever_its_stream_is_told_since) {
  program.access(*b, x, Access::write);
  program.access(*c, y, Access::write);
  const Moment first = newest(x);
  const Moment second = newest(y);
  a->lane().follow(first);
  const Lane::Version snapshot = a->lane().snapshot();
  // A finalizer that enqueues other things meanwhile.
  for (int i = 0; i < 5; ++i) {
    const auto other = stream(device());
    other->lane().follow(second);
    other->lane().advance(other->lane().snapshot());
  }
  a->lane().follow(second);
  const Moment own = a->lane().advance(snapshot);
  CHECK(own.clock.covers(first.lane->value, first.count));
  CHECK(!own.clock.covers(second.lane->value, second.count));
}

TEST_IN(LegacySetting, what_is_expected_of_the_legacy_stream_takes_the_place_of_nothing) {
  Enqueued before(*a);
  const Gate gate(*legacy);
  program.access(*legacy, x, Access::read);
  begin(*a);
  before.note(x, Access::read);
  CHECK_EQUAL(x->uses(Access::write, {0, 64}).size(), std::size_t{2});
}

TEST_IN(LegacySetting, who_looks_at_a_blocking_stream_learns_nothing_that_is_only_expected) {
  program.access(*a, block(), Access::read);
  program.access(*legacy, x, Access::write);
  begin(*a);
  CHECK(a->lane().past().covers(newest(x)));
  CHECK(!is_settled(*a, x));
  program.access(*a, block(), Access::read);
  CHECK(is_settled(*a, x));
}

TEST_IN(LegacySetting, of_what_is_expected_a_stream_is_settled_with_what_its_operations_came_after) {
  begin(*a);
  program.access(*legacy, x, Access::write);
  Enqueued operation(*a);
  program.access(*legacy, y, Access::write);
  begin(*a);
  operation.note(block(), Access::read);
  CHECK(is_settled(*a, x));
  CHECK(!is_settled(*a, y));
}

TEST_IN(LegacySetting, what_else_a_stream_knows_is_settled_before_and_while_something_is_expected) {
  const auto b = stream(device());
  program.access(*a, block(), Access::read);
  program.access(*b, x, Access::write);
  a->lane().follow(newest(x));
  program.access(*legacy, block(), Access::write);
  begin(*a);
  CHECK(is_settled(*a, x));
  program.access(*b, y, Access::write);
  a->lane().follow(newest(y));
  CHECK(is_settled(*a, y));
}

// The races that an access would make if the task put it in.
std::vector<Race> coming(Stream& stream, const Ref<HostTask>& task, const Ref<Storage>& storage, Access access) {
  const Touch touch{storage.get(), 0, 64, nullptr, 0, access, false};
  const Ordering ordering(stream, task->lane);
  return ordering.missing({&touch, 1}, ordering.coming());
}

TEST_IN(Setting, what_is_coming_is_what_an_operation_would_come_after) {
  program.access(*b, x, Access::write);
  program.access(*b, y, Access::write);
  Program knowing;
  knowing.task->lane.follow(newest(x));
  CHECK(coming(*a, knowing.task, x, Access::read).empty());
  CHECK_EQUAL(coming(*a, knowing.task, y, Access::read).size(), std::size_t{1});
  a->lane().follow(newest(y));
  CHECK(coming(*a, knowing.task, y, Access::read).empty());
}

TEST_IN(Setting, what_another_task_is_refused_an_operation_does_not_come_after) {
  program.access(*b, x, Access::write);
  Program other;
  other.task->lane.follow(b->lane().settled());
  CHECK(coming(*a, other.task, x, Access::read).empty());
  CHECK_EQUAL(program.access(*a, x, Access::read).size(), std::size_t{1});
  // The stream is told when one of that task comes about.
  CHECK(other.access(*a, x, Access::write).empty());
}

TEST_IN(LegacySetting, what_a_blocking_stream_is_refused_comes_after_the_legacy_stream) {
  program.access(*legacy, x, Access::write);
  CHECK(coming(*a, program.task, x, Access::read).empty());
  program.access(*a, block(), Access::read);
  program.access(*legacy, y, Access::write);
  CHECK(coming(*a, program.task, y, Access::read).empty());
  // The stream knows of what its operation came after, and of no more.
  CHECK(is_settled(*a, x));
  CHECK(!is_settled(*a, y));
  begin(*a);
  CHECK(!is_settled(*a, y));
  program.access(*a, block(), Access::read);
  CHECK(is_settled(*a, y));
}

TEST_IN(LegacySetting, what_the_legacy_stream_is_refused_comes_after_blocking_ones) {
  program.access(*a, x, Access::write);
  CHECK(coming(*legacy, program.task, x, Access::read).empty());
  CHECK(program.access(*legacy, x, Access::read).empty());
}

TEST_IN(LegacySetting, what_a_legacy_operation_did_not_come_after_blocking_streams_do_not_either) {
  const auto b = blocking();
  program.access(*b, block(), Access::read);
  Enqueued before(*legacy);
  const Gate gate(*a);
  program.access(*a, x, Access::write);
  begin(*legacy);
  before.note(block(), Access::write);
  CHECK_EQUAL(program.access(*b, x, Access::read).size(), std::size_t{1});
  // The legacy stream's next one does.
  program.access(*legacy, block(), Access::read);
  const auto c = blocking();
  CHECK(program.access(*c, x, Access::read).empty());
}

TEST_IN(LegacySetting, who_waits_for_the_legacy_stream_puts_something_into_it) {
  const auto b = stream(device());
  const auto c = blocking();
  const Gate gate(*a);
  program.access(*a, x, Access::write);
  Ordering(*b, program.task->lane).wait(*legacy);
  CHECK(program.access(*c, x, Access::read).empty());
}

TEST_IN(LegacySetting, an_event_or_a_wait_is_what_the_legacy_order_goes_by_too) {
  const auto b = stream(device());
  program.access(*legacy, x, Access::write);
  Ordering(*a, program.task->lane).wait(*b);
  CHECK(is_settled(*a, x));
}

}  // namespace
}  // namespace anabranch
