// Jobs left by many threads and taken by many. To be run under ThreadSanitizer.
#include <thread>
#include <vector>

#include "anabranch/stream/host.hpp"
#include "check.hpp"

namespace anabranch {
namespace {

using namespace check;

struct QuietJob : HostJob {};

struct Note final : HostJob {
  int poster = 0;
  int number = 0;
  std::atomic<int> taken{0};
};

TEST(every_job_is_taken_once) {
  constexpr int posters = 3;
  constexpr int each = 3000;
  Inbox inbox;
  std::vector<Note> notes(posters * each);
  std::atomic<int> taken{0};
  std::atomic<bool> out_of_order{false};
  std::vector<std::thread> takers;
  for (int i = 0; i < 3; ++i) {
    takers.emplace_back([&] {
      std::vector<int> last(posters, -1);
      while (HostJob* job = inbox.take()) {
        auto& note = static_cast<Note&>(*job);
        int& before = last[static_cast<std::size_t>(note.poster)];
        if (note.number <= before) out_of_order = true;
        before = note.number;
        ++note.taken;
        ++taken;
      }
    });
  }
  std::vector<std::thread> threads;
  for (int p = 0; p < posters; ++p) {
    threads.emplace_back([&, p] {
      for (int i = 0; i < each; ++i) {
        Note& note = notes[static_cast<std::size_t>(p * each + i)];
        note.poster = p;
        note.number = i;
        inbox.post(&note);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(eventually([&] { return taken == posters * each; }));
  CHECK(eventually([&] { return inbox.spare() == 3; }));
  inbox.close();
  for (auto& thread : takers) thread.join();
  CHECK(!out_of_order);
  for (const Note& note : notes) CHECK_EQUAL(note.taken.load(), 1);
}

TEST(brief_jobs_are_taken_together_and_each_once) {
  constexpr int posters = 3;
  constexpr int each = 3000;
  Inbox inbox;
  std::vector<Note> notes(posters * each);
  std::atomic<int> taken{0};
  std::vector<std::thread> takers;
  for (int i = 0; i < 3; ++i) {
    takers.emplace_back([&] {
      for (HostJob* job = inbox.take(); job; job = inbox.take()) {
        while (job) {
          HostJob* later = job->next_job;
          ++static_cast<Note&>(*job).taken;
          ++taken;
          job = later;
        }
      }
    });
  }
  std::vector<std::thread> threads;
  for (int p = 0; p < posters; ++p) {
    threads.emplace_back([&, p] {
      for (int i = 0; i < each; ++i) inbox.post(&notes[static_cast<std::size_t>(p * each + i)], i % 3 != 0);
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(eventually([&] { return taken == posters * each; }));
  CHECK(eventually([&] { return inbox.spare() == 3; }));
  inbox.close();
  for (auto& thread : takers) thread.join();
  for (const Note& note : notes) CHECK_EQUAL(note.taken.load(), 1);
}

TEST(brief_jobs_come_first_in_their_order_and_count_as_one) {
  Inbox inbox;
  Note longer;
  Note first;
  Note second;
  inbox.post(&longer);
  inbox.post(&first, true);
  inbox.post(&second, true);
  CHECK_EQUAL(inbox.spare(), -2);
  HostJob* taken = inbox.take();
  CHECK(taken == &first);
  CHECK(taken->next_job == &second);
  CHECK(second.next_job == nullptr);
  CHECK(inbox.take() == &longer);
  CHECK(longer.next_job == nullptr);
  CHECK_EQUAL(inbox.spare(), 0);
}

TEST(spare_counts_waiting_threads_less_waiting_jobs) {
  Inbox inbox;
  CHECK_EQUAL(inbox.spare(), 0);
  Note first;
  Note second;
  inbox.post(&first);
  inbox.post(&second);
  CHECK_EQUAL(inbox.spare(), -2);
  CHECK(inbox.take() == &first);
  CHECK(inbox.take() == &second);
  CHECK_EQUAL(inbox.spare(), 0);
}

TEST(a_closed_inbox_wakes_all_takers) {
  for (int round = 0; round < 20; ++round) {
    Inbox inbox;
    std::vector<std::thread> takers;
    for (int i = 0; i < 4; ++i) {
      takers.emplace_back([&inbox] {
        if (inbox.take()) std::abort();
      });
    }
    inbox.close();
    for (auto& thread : takers) thread.join();
    CHECK(inbox.take() == nullptr);
  }
}

TEST(what_is_posted_quietly_wakes_another_thread_if_its_own_does_not_take_it) {
  Inbox inbox;
  std::thread watcher([&inbox] {
    while (inbox.wait_until_short()) {
    }
  });
  std::atomic<HostJob*> taken{nullptr};
  std::thread idle([&] { taken = inbox.take(); });
  CHECK(eventually([&] { return inbox.spare() == 1; }));
  QuietJob own, left;
  posts_quietly() = true;
  inbox.post(&own);
  HostJob* const mine = inbox.try_take();
  inbox.post(&left);
  posts_quietly() = false;
  CHECK(mine == &own || mine == nullptr);  // the watcher may have been quicker on a slow machine
  CHECK(eventually([&] { return taken.load() != nullptr; }));
  if (mine) CHECK(taken.load() == &left);
  inbox.close();
  idle.join();
  watcher.join();
}

}  // namespace
}  // namespace anabranch
