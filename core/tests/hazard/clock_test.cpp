// What is known to have happened before, against a map.
#include "anabranch/hazard/clock.hpp"

#include <algorithm>
#include <ctime>
#include <map>
#include <random>
#include <vector>

#include "check.hpp"

namespace anabranch {
namespace {

using Model = std::map<std::uint32_t, Point>;

constexpr std::uint32_t streams = 6;

bool join(Model& model, std::uint32_t stream, Point point) {
  const bool news = model[stream] < point;
  model[stream] = std::max(model[stream], point);
  return news;
}

void check_equal(const Clock& clock, const Model& model) {
  std::size_t size = 0;
  for (std::uint32_t stream = 0; stream < streams; ++stream) {
    const auto found = model.find(stream);
    const Point point = found == model.end() ? 0 : found->second;
    size += point != 0;
    CHECK_EQUAL(clock.known(stream), point);
    CHECK(clock.covers(stream, point));
    CHECK(!clock.covers(stream, point + 1));
  }
  CHECK_EQUAL(clock.size(), size);
}

TEST(a_new_clock_knows_nothing) {
  Clock clock;
  CHECK_EQUAL(clock.size(), 0U);
  CHECK(clock.covers(3, 0));
  CHECK(!clock.covers(3, 1));
  CHECK(!clock.join(3, 0));
  CHECK(!clock.join(Clock()));
}

TEST(clocks_learn_from_each_other_as_maps_do) {
  std::mt19937 random(9);
  const auto below = [&random](unsigned bound) { return static_cast<std::uint32_t>(random() % bound); };
  for (int program = 0; program < 300; ++program) {
    std::vector<Clock> clocks(4);
    std::vector<Model> models(4);
    for (int step = 0; step < 60; ++step) {
      const std::uint32_t i = below(4);
      const std::uint32_t j = below(4);
      if (below(3) == 0) {
        clocks[i] = clocks[j];
        models[i] = models[j];
      } else if (below(2) == 0) {
        const std::uint32_t stream = below(streams);
        const Point point = below(12);
        CHECK_EQUAL(clocks[i].join(stream, point), join(models[i], stream, point));
      } else {
        bool news = false;
        for (const auto& [stream, point] : Model(models[j])) news |= join(models[i], stream, point);
        CHECK_EQUAL(clocks[i].join(clocks[j]), news);
      }
      // None of the others has changed with it.
      for (std::size_t k = 0; k < clocks.size(); ++k) check_equal(clocks[k], models[k]);
    }
  }
}

// A host task that waits for many streams which had work since the last time, as `synchronize` does. Looking at all
// entries for each stream takes more than a second here.
TEST(a_clock_learns_from_many_earlier_ones_of_itself_at_once) {
  constexpr std::uint32_t many = 20000;
  Clock task;
  std::vector<Clock> all(many);
  for (std::uint32_t stream = 0; stream < many; ++stream) task.join(stream, 1);
  const std::clock_t begin = std::clock();
  for (Point round = 2; round < 5; ++round) {
    for (std::uint32_t stream = 0; stream < many; ++stream) {
      if (stream % round == 0) CHECK(all[stream].join(task));
    }
    for (std::uint32_t stream = 0; stream < many; ++stream) {
      CHECK(!task.join(all[stream]));
      if (stream % round == 0) CHECK(task.join(stream, round));
    }
  }
  CHECK(std::clock() - begin < CLOCKS_PER_SEC / 2);  // processor time: the machine may be busy
}

}  // namespace
}  // namespace anabranch
