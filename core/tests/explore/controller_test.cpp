// Programs that run under exploration, on a CPU device.
#include <set>
#include <thread>

#include "anabranch/explore/explore.hpp"
#include "anabranch/hazard/submission.hpp"
#include "anabranch/runtime.hpp"
#include "anabranch/stream/event.hpp"
#include "check.hpp"
#include "gate.hpp"

namespace anabranch::explore {
namespace {

using namespace std::chrono_literals;

Backend& cpu() { return find_device("cpu"); }

// What the host of a run does, without any order of its own.
class Host {
 public:
  Ref<Stream> stream(const std::string& name = "stream") { return check::stream(cpu(), name); }
  Ref<Storage> memory(Stream& stream) { return Storage::allocate(cpu(), &stream, 64, MemoryKind::device); }

  Point fill(Stream& stream, Storage& storage, std::uint8_t value, HazardMode mode = HazardMode::off) {
    const Touch touch{&storage, 0, 64, nullptr, 0, Access::write, false};
    Submission submission(stream, mode, {&touch, 1});
    submission.begin(*task_, nullptr);
    const std::int64_t count = 64;
    const Point point = cpu().fill(stream, {storage.pointer(), row_major(1, &count, 1)}, &value, count);
    submission.commit(point, {});
    return point;
  }

 private:
  Ref<HostTask> task_ = make_ref<HostTask>();
};

struct Result {
  std::size_t classes = 0;
  std::size_t runs = 0;
  Outcome last;
};

template <class Program>
Result explore(Program&& program, std::unique_ptr<Exploration> exploration = Exploration::of_classes()) {
  Result result;
  while (exploration->more()) {
    exploration->begin();
    try {
      program();
    } catch (const Error&) {
      // A deadlock, which the outcome tells of.
    }
    CHECK(exploration->drain(60s, false));
    result.last = exploration->end(true);
    ++result.runs;
    result.classes += result.last.fresh;
  }
  return result;
}

void check_classes(const Result& result, std::size_t classes) {
  CHECK_EQUAL(result.last.diverged, "");
  CHECK(result.last.deadlock.empty());
  CHECK_EQUAL(result.classes, classes);
  CHECK_EQUAL(result.runs, classes);
}

TEST(writes_in_conflict_run_in_every_order) {
  for (const std::size_t count : {1U, 2U, 3U}) {
    std::set<int> last;
    const Result result = explore([&] {
      Host host;
      std::vector<Ref<Stream>> streams;
      for (std::size_t i = 0; i < count; ++i) streams.push_back(host.stream("s" + std::to_string(i)));
      const Ref<Storage> storage = Storage::allocate(cpu(), nullptr, 64, MemoryKind::device);
      for (std::size_t i = 0; i < count; ++i) host.fill(*streams[i], *storage, static_cast<std::uint8_t>(i));
      for (const auto& stream : streams) check::finish(*stream);
      last.insert(static_cast<int>(*storage->pointer()));
    });
    check_classes(result, count == 3 ? 6 : count);
    CHECK_EQUAL(last.size(), count);
  }
}

TEST(what_hazards_order_is_one_class) {
  const Result result = explore([&] {
    Host host;
    const Ref<Stream> a = host.stream("a");
    const Ref<Stream> b = host.stream("b");
    const Ref<Storage> storage = Storage::allocate(cpu(), nullptr, 64, MemoryKind::device);
    host.fill(*a, *storage, 1, HazardMode::automatic);
    host.fill(*b, *storage, 2, HazardMode::automatic);
    check::finish(*b);
    CHECK_EQUAL(static_cast<int>(*storage->pointer()), 2);
  });
  check_classes(result, 1);
}

TEST(a_query_is_answered_both_ways) {
  std::multiset<bool> answers;
  const Result result = explore([&] {
    Host host;
    const Ref<Stream> a = host.stream();
    const Ref<Storage> storage = Storage::allocate(cpu(), nullptr, 64, MemoryKind::device);
    const Point point = host.fill(*a, *storage, 1);
    ask(*a, point);
    answers.insert(cpu().query(*a, point));
  });
  check_classes(result, 2);
  CHECK(answers == std::multiset<bool>({false, true}));
}

TEST(the_legacy_stream_is_order) {
  const Result result = explore([&] {
    Host host;
    const Ref<Stream> a = check::stream(cpu(), "a", false);
    const Ref<Stream> b = check::stream(cpu(), "b", false);
    const Ref<Stream> legacy = cpu().default_stream(StreamRole::legacy);
    const Ref<Storage> storage = Storage::allocate(cpu(), nullptr, 64, MemoryKind::device);
    host.fill(*a, *storage, 1);
    host.fill(*legacy, *storage, 2);
    host.fill(*b, *storage, 3);
    check::finish(*b);
    CHECK_EQUAL(static_cast<int>(*storage->pointer()), 3);
  });
  check_classes(result, 1);
}

TEST(a_schedule_is_repeated) {
  int last = 0;
  const auto program = [&] {
    Host host;
    const Ref<Stream> a = host.stream("a");
    const Ref<Stream> b = host.stream("b");
    const Ref<Storage> storage = Storage::allocate(cpu(), nullptr, 64, MemoryKind::device);
    host.fill(*a, *storage, 1);
    host.fill(*b, *storage, 2);
    check::finish(*a);
    check::finish(*b);
    last = static_cast<int>(*storage->pointer());
  };
  const Result all = explore(program);
  CHECK_EQUAL(all.runs, 2U);
  const int reversed = last;
  CHECK_EQUAL(reversed, 1);
  const Result again = explore(program, Exploration::of_schedule(all.last.schedule));
  CHECK_EQUAL(again.last.diverged, "");
  CHECK_EQUAL(last, reversed);
  CHECK_EQUAL(again.last.schedule, all.last.schedule);
}

TEST(a_gate_that_stays_closed_is_a_deadlock) {
  const Result result = explore([&] {
    Host host;
    const Ref<Stream> a = host.stream("held");
    cpu().suspend(*a, make_ref<HostOperation>());
    check::finish(*a);
  });
  CHECK_EQUAL(result.runs, 1U);
  CHECK_EQUAL(result.last.deadlock.size(), 2U);
  CHECK_EQUAL(result.last.deadlock[1].lane, "held");
}

TEST(freed_memory_is_not_used_again_in_a_run) {
  const Result result = explore([&] {
    Host host;
    const Ref<Stream> a = host.stream("a");
    const std::byte* first = host.memory(*a)->pointer();
    CHECK(host.memory(*a)->pointer() != first);
  });
  check_classes(result, 1);
}

TEST(runs_leave_nothing_behind) {
  Host host;
  const Ref<Stream> outside = host.stream("outside");
  const Ref<Storage> storage = Storage::allocate(cpu(), nullptr, 64, MemoryKind::device);
  const Result result = explore([&] {
    const Ref<Stream> a = host.stream("a");
    host.fill(*outside, *storage, 1, HazardMode::automatic);
    host.fill(*a, *storage, 2, HazardMode::automatic);
    host.fill(*host.stream("b"), *storage, 2);
  });
  check_classes(result, 3);
  host.fill(*outside, *storage, 7, HazardMode::automatic);
  check::finish(*outside);
  CHECK_EQUAL(static_cast<int>(*storage->pointer()), 7);
}

}  // namespace
}  // namespace anabranch::explore
