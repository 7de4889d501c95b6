// Collectives of many threads and channels over a stand-in transport. To be run under ThreadSanitizer.
#include "anabranch/collective/collective.hpp"

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "check.hpp"

namespace anabranch {
namespace {

using namespace check;

// Each transfer is over when it was asked for as often as its count says; negative: never.
class StandIn final : public Transport {
 public:
  std::string start(std::uintptr_t communicator, Transfer& transfer) override {
    if (transfer.peer < 0) return "refused";
    transfer.request = 1;
    const auto number = static_cast<std::int64_t>(transfer.op);
    if (number != 0 && number != ++last_[communicator]) ++out_of_order;
    return {};
  }
  std::string test(Transfer& transfer) override {
    if (transfer.count > 0) --transfer.count;
    transfer.over = transfer.count == 0;
    return {};
  }
  void give_back(std::uintptr_t) noexcept override { ++given_back; }

  std::atomic<int> out_of_order{0};
  std::atomic<int> given_back{0};

 private:
  std::int64_t last_[8] = {};
};

Ref<Collective> make(const Ref<Channel>& channel, std::int64_t rounds, std::uintptr_t number = 0, int peer = 0) {
  Transfer transfer;
  transfer.count = rounds;
  transfer.op = number;
  transfer.peer = peer;
  return make_ref<Collective>(channel, std::vector<Transfer>{transfer}, std::vector<Ref<Storage>>(), Division(),
                              Label{"barrier", {}});
}

constexpr auto long_time = std::chrono::minutes(1);

TEST(collectives_start_in_the_order_of_the_program_whoever_comes_first) {
  constexpr int channels = 4;
  constexpr int each = 2000;
  const auto transport = make_ref<StandIn>();
  std::vector<Ref<Channel>> all;
  std::vector<std::vector<Ref<Collective>>> made(channels);
  for (int c = 0; c < channels; ++c) {
    all.push_back(make_ref<Channel>(transport, static_cast<std::uintptr_t>(c), long_time));
    for (int i = 1; i <= each; ++i) {
      made[static_cast<std::size_t>(c)].push_back(make(all.back(), 1 + i % 3, static_cast<std::uintptr_t>(i)));
      CHECK_EQUAL(all.back()->enqueue(made[static_cast<std::size_t>(c)].back()), static_cast<std::uint64_t>(i));
    }
  }
  // Two threads play the streams of each channel, which reach the collectives in any order.
  std::vector<std::thread> threads;
  for (int c = 0; c < channels; ++c) {
    for (int half = 0; half < 2; ++half) {
      threads.emplace_back([&, c, half] {
        for (int i = half; i < each; i += 2) made[static_cast<std::size_t>(c)][static_cast<std::size_t>(i)]->start();
      });
    }
  }
  for (auto& thread : threads) thread.join();
  for (const auto& channel : all) {
    CHECK(eventually([&] { return channel->idle(); }));
    CHECK_EQUAL(channel->started(), static_cast<std::uint64_t>(each));
  }
  CHECK_EQUAL(transport->out_of_order.load(), 0);
  for (const auto& of_channel : made) {
    for (const auto& collective : of_channel) CHECK(eventually([&] { return collective->completed(); }));
  }
}

TEST(a_channel_fails_while_its_collectives_come_and_go) {
  for (int round = 0; round < 50; ++round) {
    const auto transport = make_ref<StandIn>();
    const auto channel = make_ref<Channel>(transport, 0, long_time);
    std::vector<Ref<Collective>> made;
    for (int i = 0; i < 100; ++i) {
      made.push_back(make(channel, i < 20 ? 1 : -1));
      channel->enqueue(made.back());
    }
    std::thread stream([&] {
      for (const auto& collective : made) collective->start();
    });
    channel->fail(make_ref<Failure>("a rank has died"));
    stream.join();
    for (const auto& collective : made) CHECK(eventually([&] { return collective->completed(); }));
    const auto late = make(channel, 1);
    CHECK_EQUAL(channel->enqueue(late), 0u);
    CHECK(late->completed());
  }
}

TEST(what_takes_too_long_or_is_refused_is_reported) {
  const auto transport = make_ref<StandIn>();
  const auto slow = make_ref<Channel>(transport, 0, std::chrono::milliseconds(1));
  const auto refused = make_ref<Channel>(transport, 1, long_time);
  const auto never = make(slow, -1);
  const auto bad = make(refused, 1, 0, -1);
  slow->enqueue(never);
  refused->enqueue(bad);
  never->start();
  bad->start();
  std::vector<ChannelFailure> found;
  CHECK(eventually([&] {
    for (ChannelFailure& failure : Progress::instance().take_failures()) found.push_back(std::move(failure));
    return found.size() == 2;
  }));
  for (const ChannelFailure& failure : found) {
    CHECK_EQUAL(failure.late, failure.channel == slow);
    CHECK_EQUAL(failure.text, failure.late ? "" : "refused");
    failure.channel->fail(make_ref<Failure>("given up"));
  }
  CHECK(eventually([&] { return never->completed() && bad->completed(); }));
}

bool is_over(void* collective) noexcept { return static_cast<Collective*>(collective)->completed(); }

TEST(hosts_that_wait_drive_beside_the_thread) {
  constexpr int hosts = 4;
  constexpr int each = 2000;
  const auto transport = make_ref<StandIn>();
  std::vector<std::thread> threads;
  for (int host = 0; host < hosts; ++host) {
    threads.emplace_back([&transport, host] {
      const auto channel = make_ref<Channel>(transport, static_cast<std::uintptr_t>(host), long_time);
      for (int i = 1; i <= each; ++i) {
        const auto collective = make(channel, 1 + i % 5, static_cast<std::uintptr_t>(i));
        channel->enqueue(collective);
        collective->start();
        host_help().load()(&is_over, collective.get());
        // Another host may have been driving.
        CHECK(eventually([&] { return collective->completed(); }));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQUAL(transport->out_of_order.load(), 0);
}

TEST(what_a_host_leaves_the_thread_ends) {
  const auto transport = make_ref<StandIn>();
  const auto channel = make_ref<Channel>(transport, 4, long_time);
  const auto begun = make(channel, 50);
  channel->enqueue(begun);
  begun->start();
  int asked = 0;
  host_help().load()([](void* count) noexcept { return ++*static_cast<int*>(count) > 3; }, &asked);
  CHECK(eventually([&] { return begun->completed(); }));
  // The thread is not woken for what a host starts that has just helped, but looks by itself.
  for (int i = 0; i < 100; ++i) {
    const auto next = make(channel, 1);
    channel->enqueue(next);
    next->start();
    if (i % 2 == 0) host_help().load()(&is_over, next.get());
    CHECK(eventually([&] { return next->completed(); }));
  }
}

TEST(a_closed_channel_gives_its_communicator_back_when_all_is_over) {
  const auto transport = make_ref<StandIn>();
  const auto channel = make_ref<Channel>(transport, 2, long_time);
  const auto collective = make(channel, 1);
  channel->enqueue(collective);
  channel->close();
  CHECK_EQUAL(transport->given_back.load(), 0);
  collective->start();
  CHECK(eventually([&] { return transport->given_back == 1; }));
}

TEST(a_rank_that_has_ended_is_missed_by_what_it_took_no_part_in) {
  const auto channel = make_ref<Channel>(make_ref<StandIn>(), 0, long_time);
  constexpr auto now = std::chrono::nanoseconds(0);
  std::vector<Ref<Collective>> made{make(channel, -1), make(channel, -1)};
  for (const auto& each : made) channel->enqueue(each);
  CHECK(!channel->lacks(0, 2, now));
  CHECK(channel->lacks(0, 1, now));  // though no stream has come to the second one
  made[0]->start();
  CHECK(eventually([&] { return channel->started() == 1; }));
  CHECK(!channel->lacks(0, 2, now));
  CHECK(channel->lacks(0, 0, now));
  channel->fail(make_ref<Failure>("enough"));
}

TEST(a_message_misses_the_other_rank_of_it_alone) {
  const auto channel = make_ref<Channel>(make_ref<StandIn>(), 0, long_time);
  Transfer transfer;
  transfer.verb = Verb::receive;
  transfer.count = -1;
  transfer.peer = 2;
  const auto message = make_ref<Collective>(channel, std::vector<Transfer>{transfer}, std::vector<Ref<Storage>>(),
                                            Division(), Label{"recv", {}, false});
  channel->enqueue(message);
  CHECK(!channel->lacks(2, 0, std::chrono::nanoseconds(0)));  // its stream has not come to it
  message->start();
  CHECK(eventually([&] { return channel->lacks(2, 0, std::chrono::nanoseconds(0)); }));
  CHECK(!channel->lacks(2, 0, std::chrono::hours(1)));
  CHECK(!channel->lacks(1, 0, std::chrono::nanoseconds(0)));
  channel->fail(make_ref<Failure>("enough"));
}

TEST(replays_take_their_places_when_they_are_launched) {
  const auto transport = make_ref<StandIn>();
  const auto channel = make_ref<Channel>(transport, 3, long_time);
  Transfer transfer;
  transfer.count = 1;
  const auto work = make_ref<CollectiveWork>(channel, std::vector<Transfer>{transfer}, std::vector<Ref<Storage>>(),
                                             Division(), Label{"barrier", {}});
  work->reserve();
  const auto between = make(channel, 1);
  CHECK_EQUAL(channel->enqueue(between), 2u);
  work->reserve();
  work->reserve();
  work->withdraw();
  between->start();
  const Ref<HostOperation> first = work->make(nullptr);
  first->start();
  CHECK(eventually([&] { return between->completed() && first->completed(); }));
  const Ref<HostOperation> second = work->make(nullptr);
  second->start();
  CHECK(eventually([&] { return second->completed() && channel->idle(); }));
  CHECK(work->make(nullptr)->failure().get() != nullptr);
}

}  // namespace
}  // namespace anabranch
