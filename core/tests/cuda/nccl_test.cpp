// A communicator of NCCL, with a stand-in for the library: which calls reach it, in which order, and what becomes of
// failures.
#include "anabranch/collective/nccl.hpp"

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "device.hpp"
#include "gate.hpp"

namespace anabranch::cuda {
namespace {

using namespace check;

constexpr int refused = 5;

// The calls that the library got: a letter each, with the peer or the stream's number.
struct Library {
  std::mutex mutex;
  std::vector<std::string> calls;
  bool refuses = false;
};
Library library;

int note(const std::string& call) {
  const std::lock_guard lock(library.mutex);
  library.calls.push_back(call);
  return library.refuses ? refused : 0;
}

int all_reduce(const void*, void*, std::size_t, int, int, void*, void* stream) {
  return note("all_reduce " + std::to_string(reinterpret_cast<std::uintptr_t>(stream)));
}
int send(const void* data, std::size_t count, int, int peer, void*, void*) {
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  return note("send " + std::to_string(at) + " " + std::to_string(count) + " " + std::to_string(peer));
}
int receive(void* data, std::size_t count, int, int peer, void*, void*) {
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  return note("receive " + std::to_string(at) + " " + std::to_string(count) + " " + std::to_string(peer));
}
int begin() { return note("begin"); }
int end() { return note("end"); }
const char* text_of(int code) { return code == refused ? "refused" : "?"; }

std::vector<std::string> calls() {
  const std::lock_guard lock(library.mutex);
  return std::exchange(library.calls, {});
}
void refuse(bool yes) {
  const std::lock_guard lock(library.mutex);
  library.refuses = yes;
}

Ref<NcclChannel> channel(int size = 1) {
  calls();
  refuse(false);
  NcclFunctions functions;
  functions.all_reduce = reinterpret_cast<void*>(&all_reduce);
  functions.send = reinterpret_cast<void*>(&send);
  functions.receive = reinterpret_cast<void*>(&receive);
  functions.group_start = reinterpret_cast<void*>(&begin);
  functions.group_end = reinterpret_cast<void*>(&end);
  functions.error_string = reinterpret_cast<void*>(&text_of);
  return make_ref<NcclChannel>(functions, 7, size);
}

Point reduce(NcclChannel& channel, Stream& stream) {
  anabranch::Transfer transfer;
  transfer.verb = Verb::all_reduce;
  return channel.enqueue(stream, {transfer}, {"all_reduce", {}, true});
}

std::string call_on(const Stream& stream) { return "all_reduce " + std::to_string(stream.handle()); }

TEST(calls_reach_the_library_in_the_order_of_the_program) {
  const auto one = channel();
  const auto a = stream(device());
  const auto b = stream(device());
  reduce(*one, *b);
  CHECK(calls() == (Lines{call_on(*b)}));
  Gate gate(*a);
  reduce(*one, *a);
  const Point last = reduce(*one, *b);
  CHECK(calls().empty());
  CHECK_EQUAL(one->started(), 3U);
  CHECK(!device().query(*b, last));
  gate.open();
  finish(*b, last);
  CHECK(calls() == (Lines{call_on(*a), call_on(*b)}));
  // Nothing is held any more: at once again.
  reduce(*one, *a);
  CHECK(calls() == (Lines{call_on(*a)}));
}

TEST(the_oldest_operation_is_known_until_it_is_completed) {
  const auto one = channel();
  const auto a = stream(device());
  CHECK(!one->oldest().found);
  Gate gate(*a);
  reduce(*one, *a);
  anabranch::Transfer message;
  message.verb = Verb::send;
  one->enqueue(*a, {message}, {"send", {}, false});
  const Waiting oldest = one->oldest();
  CHECK(oldest.found);
  CHECK_EQUAL(oldest.number, 1U);
  CHECK_EQUAL(std::string_view(oldest.label.name), "all_reduce");
  CHECK_EQUAL(one->next_number(), 2U);
  gate.open();
  one->finish();
  CHECK(!one->oldest().found);
  CHECK_EQUAL(one->failure(), "");
}

TEST(the_parts_of_a_collective_are_messages_of_a_group) {
  const auto one = channel(3);
  const auto a = stream(device());
  anabranch::Transfer transfer;
  transfer.verb = Verb::all_to_all;
  transfer.send = reinterpret_cast<const void*>(1000);
  transfer.receive = reinterpret_cast<void*>(2000);
  transfer.count = 8;
  one->enqueue(*a, {transfer}, {"all_to_all", {}, true});
  CHECK(calls() == (Lines{"begin", "send 1000 8 0", "send 1008 8 1", "send 1016 8 2", "receive 2000 8 0",
                          "receive 2008 8 1", "receive 2016 8 2", "end"}));
  transfer.verb = Verb::gather;
  transfer.peer = 2;
  one->enqueue(*a, {transfer}, {"gather", {}, true});
  CHECK(calls() ==
        (Lines{"begin", "send 1000 8 2", "receive 2000 8 0", "receive 2008 8 1", "receive 2016 8 2", "end"}));
  transfer.receive = nullptr;
  one->enqueue(*a, {transfer}, {"gather", {}, true});
  CHECK(calls() == (Lines{"begin", "send 1000 8 2", "end"}));
  transfer.verb = Verb::scatter;
  transfer.send = nullptr;
  transfer.receive = reinterpret_cast<void*>(2000);
  one->enqueue(*a, {transfer}, {"scatter", {}, true});
  CHECK(calls() == (Lines{"begin", "receive 2000 8 2", "end"}));
}

TEST(what_the_library_refuses_is_not_enqueued) {
  const auto one = channel();
  const auto a = stream(device());
  refuse(true);
  const Point before = a->issued();
  CHECK_THROWS(Error, reduce(*one, *a));
  CHECK_EQUAL(a->issued(), before);
  CHECK_EQUAL(one->started(), 0U);
  CHECK(!one->oldest().found);
  refuse(false);
  finish(*a, reduce(*one, *a));
  CHECK_EQUAL(one->started(), 1U);
}

TEST(a_call_that_a_failed_stream_keeps_is_a_failure_of_all) {
  const auto one = channel();
  const auto a = stream(device());
  const auto b = stream(device());
  Gate gate(*a);
  fail(*a, "broken");
  reduce(*one, *a);
  const Point later = reduce(*one, *b);
  gate.open();
  CHECK_EQUAL(failure_at(*b, later), "broken");
  CHECK(calls().empty());
  CHECK(!one->oldest().found);
  CHECK_EQUAL(one->failure(), "broken");
  one->finish();
}

TEST(an_abandoned_communicator_makes_no_calls) {
  const auto one = channel();
  const auto a = stream(device());
  Gate gate(*a);
  const Point point = reduce(*one, *a);
  const std::vector<Ref<Stream>> streams = one->abandon();
  CHECK_EQUAL(streams.size(), 1U);
  CHECK(streams.front().get() == a.get());
  gate.open();
  CHECK_EQUAL(failure_at(*a, point), "the communicator of NCCL was aborted");
  const auto b = stream(device());
  CHECK_THROWS(Error, reduce(*one, *b));
  CHECK(calls().empty());
}

}  // namespace
}  // namespace anabranch::cuda
