// Copies and fills of any layout, against a model that goes element by element on the host.
#include <algorithm>
#include <random>

#include "device.hpp"
#include "random_layout.hpp"

namespace anabranch::cuda {
namespace {

using namespace check;

// A random array, once on the host, as the model, and once on the device.
struct Both {
  Both(std::mt19937& random, Stream& stream, std::int64_t itemsize, Overlap overlap)
      : model(random, itemsize, overlap), pair(device(), stream, std::max<std::size_t>(model.memory.size(), 1)) {
    std::copy(model.memory.begin(), model.memory.end(), pair.host->pointer());
    pair.upload(stream);
  }
  Elements elements(std::int64_t offset) {
    Elements there = model.elements(offset);
    there.pointer = pair.memory->pointer() + (there.pointer - model.memory.data());
    return there;
  }
  bool as_modelled(Stream& stream) {
    finish(stream, pair.download(stream));
    return std::equal(model.memory.begin(), model.memory.end(), pair.host->pointer());
  }

  RandomArray model;
  Pair pair;
};

std::int64_t below(std::mt19937& random, std::int64_t limit) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
}

TEST(copies_of_any_layout) {
  std::mt19937 random(1);
  const auto a = stream(device());
  for (int round = 0; round < 1000; ++round) {
    const std::int64_t itemsize = 1 << random() % 5;
    Both src(random, *a, itemsize, Overlap::allowed);
    Both dst(random, *a, itemsize, Overlap::none);
    const std::int64_t count = below(random, std::min(src.model.layout.size(), dst.model.layout.size()) + 1);
    const std::int64_t from = below(random, src.model.layout.size() - count + 1);
    const std::int64_t to = below(random, dst.model.layout.size() - count + 1);
    device().copy(*a, dst.elements(to), src.elements(from), count);
    copy_elements(dst.model.elements(to), src.model.elements(from), count);
    CHECK(dst.as_modelled(*a));
  }
}

TEST(fills_of_any_layout) {
  std::mt19937 random(2);
  const auto a = stream(device());
  for (int round = 0; round < 1000; ++round) {
    const std::int64_t itemsize = 1 << random() % 5;
    Both dst(random, *a, itemsize, Overlap::allowed);
    std::byte value[16];
    for (std::byte& byte : value) byte = static_cast<std::byte>(round % 3 == 0 ? 0 : random());
    const std::int64_t count = below(random, dst.model.layout.size() + 1);
    const std::int64_t offset = below(random, dst.model.layout.size() - count + 1);
    device().fill(*a, dst.elements(offset), value, count);
    fill_elements(dst.model.elements(offset), value, count);
    CHECK(dst.as_modelled(*a));
  }
}

TEST(work_behind_a_gate_comes_in_its_turn) {
  const auto a = stream(device());
  Pair pair(device(), *a, 1000);
  std::memset(pair.host->pointer(), 1, pair.size);
  finish(*a, pair.upload(*a));
  const std::byte two{2};
  Gate gate(*a);
  device().fill(*a, bytes(pair.memory->pointer(), pair.size), &two, 1000);
  const Point point = pair.download(*a);
  const auto b = stream(device());
  Pair other(device(), *b, 1000);
  finish(*b, other.upload(*b));
  CHECK(!device().query(*a, point));
  CHECK(pair.host->pointer()[999] == std::byte{1});
  gate.open();
  finish(*a, point);
  CHECK(pair.host->pointer()[0] == std::byte{2} && pair.host->pointer()[999] == std::byte{2});
}

}  // namespace
}  // namespace anabranch::cuda
