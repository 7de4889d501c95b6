// Errands left by many threads and taken by many. To be run under ThreadSanitizer.
#include <thread>
#include <vector>

#include "anabranch/host.hpp"
#include "check.hpp"

namespace anabranch {
namespace {

using namespace check;

struct Note final : Errand {
  int poster = 0;
  int number = 0;
  std::atomic<int> taken{0};
};

TEST(every_errand_is_taken_once) {
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
      while (Errand* errand = inbox.take()) {
        auto& note = static_cast<Note&>(*errand);
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

TEST(brief_errands_are_taken_together_and_each_once) {
  constexpr int posters = 3;
  constexpr int each = 3000;
  Inbox inbox;
  std::vector<Note> notes(posters * each);
  std::atomic<int> taken{0};
  std::vector<std::thread> takers;
  for (int i = 0; i < 3; ++i) {
    takers.emplace_back([&] {
      for (Errand* errand = inbox.take(); errand; errand = inbox.take()) {
        while (errand) {
          Errand* later = errand->next_errand;
          ++static_cast<Note&>(*errand).taken;
          ++taken;
          errand = later;
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

TEST(brief_errands_come_first_in_their_order_and_count_as_one) {
  Inbox inbox;
  Note longer;
  Note first;
  Note second;
  inbox.post(&longer);
  inbox.post(&first, true);
  inbox.post(&second, true);
  CHECK_EQUAL(inbox.spare(), -2);
  Errand* taken = inbox.take();
  CHECK(taken == &first);
  CHECK(taken->next_errand == &second);
  CHECK(second.next_errand == nullptr);
  CHECK(inbox.take() == &longer);
  CHECK(longer.next_errand == nullptr);
  CHECK_EQUAL(inbox.spare(), 0);
}

TEST(spare_counts_waiting_threads_less_waiting_errands) {
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

}  // namespace
}  // namespace anabranch
