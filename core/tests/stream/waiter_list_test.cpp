// Who waits for which point of a stream.
#include "stream/waiter_list.hpp"

#include <algorithm>
#include <ctime>
#include <random>
#include <utility>
#include <vector>

#include "check.hpp"

namespace anabranch {
namespace {

using namespace check;

// A waiter that adds its number to a list when it is woken.
struct Bell final : Waiter {
  void wake(const Ref<Failure>&) noexcept override { rung->push_back(number); }
  int number = 0;
  std::vector<int>* rung = nullptr;
};

std::vector<Bell> bells(int count, std::vector<int>& rung) {
  std::vector<Bell> all(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    all[static_cast<std::size_t>(i)].number = i;
    all[static_cast<std::size_t>(i)].rung = &rung;
  }
  return all;
}

TEST(waiters_come_in_the_order_of_their_points_and_then_of_arrival) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<int> rung;
    std::vector<Bell> all = bells(60, rung);
    std::vector<std::pair<Point, int>> expected;
    WaiterList list;
    for (Bell& bell : all) {
      const Point point = 1 + random() % 20;
      list.add(bell, point);
      expected.emplace_back(point, bell.number);
      if (random() % 4 != 0) continue;
      const std::size_t gone = random() % expected.size();
      Bell& removed = all[static_cast<std::size_t>(expected[gone].second)];
      CHECK(list.remove(removed));
      CHECK(!list.remove(removed));
      expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(gone));
    }
    std::sort(expected.begin(), expected.end());
    for (Point reached = 0; reached <= 21; reached += 1 + random() % 3) {
      rung.clear();
      WaiterList::wake(list.take(reached), nullptr);
      for (const int number : rung) {
        CHECK_EQUAL(number, expected.front().second);
        expected.erase(expected.begin());
      }
      CHECK_EQUAL(list.lowest(), expected.empty() ? WaiterList::none : expected.front().first);
      CHECK(list.lowest() > reached);
    }
  }
}

// The processor's time for each of so many waiters, for a point each, of which the list is given one after another.
double time_of_each(int count) {
  std::vector<int> rung;
  rung.reserve(static_cast<std::size_t>(count));
  std::vector<Bell> all = bells(count, rung);
  WaiterList list;
  const std::clock_t begin = std::clock();
  for (Bell& bell : all) list.add(bell, static_cast<Point>(bell.number));
  for (int i = 0; i < count; ++i) WaiterList::wake(list.take(static_cast<Point>(i)), nullptr);
  const std::clock_t end = std::clock();
  CHECK_EQUAL(rung.size(), all.size());
  return static_cast<double>(end - begin) / count;
}

TEST(a_waiter_costs_the_same_among_many) {
  double least = 1e9;
  for (int i = 0; i < 5; ++i) least = std::min(least, time_of_each(65'536) / std::max(time_of_each(4'096), 1e-3));
  CHECK(least < 8);  // 16 where each removal looks at every waiter
}

}  // namespace
}  // namespace anabranch
