// What is known to have happened before, against a map.
#include "anabranch/hazard/clock.hpp"

#include <algorithm>
#include <map>
#include <random>

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

}  // namespace
}  // namespace anabranch
