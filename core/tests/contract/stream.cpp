// What streams are: priorities, handles, their life and end.
#include <set>
#include <thread>

#include "contract.hpp"

namespace anabranch::contract {
namespace {

using namespace check;

TEST(a_stream_is_what_its_options_say) {
  const auto a = device().create_stream({.priority = -1, .non_blocking = false, .name = "a"});
  CHECK(&a->backend() == &device());
  CHECK_EQUAL(a->priority(), -1);
  CHECK(!a->non_blocking());
  CHECK(a->role() == StreamRole::created);
  CHECK_EQUAL(a->name(), "a");
  CHECK_EQUAL(a->activity().operations, std::uint64_t{0});
}

TEST(priorities_are_clamped) {
  const Capabilities& can = device().capabilities();
  CHECK(can.highest_priority <= can.lowest_priority);
  CHECK_EQUAL(device().create_stream({.priority = 100})->priority(), can.lowest_priority);
  CHECK_EQUAL(device().create_stream({.priority = -100})->priority(), can.highest_priority);
  CHECK_EQUAL(device().create_stream({.priority = can.highest_priority})->priority(), can.highest_priority);
}

TEST(a_stream_is_found_by_its_handle) {
  auto a = stream(device());
  const auto b = stream(device());
  CHECK(a->handle() != b->handle());
  CHECK(a->handle() > 2);
  CHECK(device().find_stream(a->handle()) == a);
  CHECK(device().find_stream(b->handle()) == b);
  const std::uintptr_t handle = a->handle();
  a.reset();
  CHECK_THROWS(Error, device().find_stream(handle));
  try {
    device().find_stream(12345);
    CHECK(!"found");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::value);
    CHECK(std::string(error.what()).find("12345") != std::string::npos);
  }
}

TEST(default_streams_have_their_handles) {
  const auto legacy = device().default_stream(StreamRole::legacy);
  const auto own = device().default_stream(StreamRole::per_thread);
  CHECK_EQUAL(legacy->handle(), std::uintptr_t{1});
  CHECK_EQUAL(own->handle(), std::uintptr_t{2});
  CHECK(!legacy->non_blocking());
  CHECK(!own->non_blocking());
  CHECK(legacy->role() == StreamRole::legacy);
  CHECK(own->role() == StreamRole::per_thread);
  CHECK(device().default_stream(StreamRole::legacy) == legacy);
  CHECK(device().default_stream(StreamRole::per_thread) == own);
  CHECK(device().find_stream(1) == legacy);
  CHECK(device().find_stream(2) == own);
  CHECK(!(instance().second.default_stream(StreamRole::legacy) == legacy));
  Ref<Stream> others;
  std::thread([&] { others = device().default_stream(StreamRole::per_thread); }).join();
  CHECK(!(others == own));
}

TEST(living_streams_are_listed) {
  auto a = stream(device());
  const auto lists = [](const Stream* wanted) {
    for (const Ref<Stream>& each : device().streams()) {
      if (each.get() == wanted) return true;
    }
    return false;
  };
  CHECK(lists(a.get()));
  CHECK(lists(device().default_stream(StreamRole::legacy).get()));
  const Stream* gone = a.get();
  a.reset();
  CHECK(!lists(gone));
}

TEST(a_dropped_stream_still_does_its_work) {
  const Log log;
  auto a = stream(device());
  const auto b = stream(device());
  Gate gate(*a);
  check::log(*a, log, "a");
  device().wait(*b, *a, a->issued());
  a.reset();
  gate.open();
  finish(*b, check::log(*b, log, "b"));
  CHECK(log.lines() == (Lines{"a", "b"}));
}

TEST(a_stream_is_new_whatever_had_its_place) {
  std::set<std::uintptr_t> handles;
  for (int i = 0; i < 50; ++i) {
    const auto a =
        device().create_stream({.priority = i % 2 ? -1 : 0, .non_blocking = i % 3 != 0, .name = std::to_string(i)});
    CHECK_EQUAL(a->name(), std::to_string(i));
    CHECK_EQUAL(a->priority(), i % 2 ? -1 : 0);
    CHECK_EQUAL(a->non_blocking(), i % 3 != 0);
    CHECK_EQUAL(a->activity().operations, std::uint64_t{0});
    CHECK(device().query(*a, a->issued()));
    const Log log;
    finish(*a, check::log(*a, log, "a"));
    CHECK(log.lines() == Lines{"a"});
    CHECK_EQUAL(a->activity().operations, std::uint64_t{1});
    fail(*a, "broken");
    CHECK_EQUAL(failure_at(*a, a->issued()), "broken");
    handles.insert(a->handle());
  }
  CHECK(!handles.empty());
}

}  // namespace
}  // namespace anabranch::contract
