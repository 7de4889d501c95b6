// Conflicts found by clocks, against a model that searches the graph of what happens before what.
#include "anabranch/hazard/history.hpp"

#include <memory>
#include <random>
#include <set>

#include "check.hpp"
#include "random_layout.hpp"

namespace anabranch {
namespace {

using namespace check;

constexpr std::size_t block_bytes = 24;

Footprint range(std::size_t low, std::size_t high) { return {low, high}; }

std::vector<Use> conflicting(const History& history, const Lane& lane, Access access, const Footprint& where) {
  return history.conflicts(lane.past(), nullptr, access, where);
}

void note(History& history, Moment when, Access access, const Footprint& where) {
  history.note({nullptr, 0, access, false, false, std::move(when), where});
}

// An access, with the bytes it touches, as plainly as can be.
struct Touch {
  std::size_t operation;
  bool writes;
  std::set<std::ptrdiff_t> bytes;
};

// Streams, tasks, events and blocks of memory, once as they are and once as a graph of operations.
class Program {
 public:
  explicit Program(unsigned seed) : random_(seed) {
    for (int i = 0; i < 5; ++i) begin_lane();
    events_.resize(3);
    blocks_.resize(2);
  }

  void step() {
    const std::size_t kind = below(10);
    if (kind < 5) return access();
    Line& line = lines_[below(lines_.size())];
    Mark& event = events_[below(events_.size())];
    if (kind == 5) {
      event = {line.lane->past(), line.ends()};
    } else if (kind == 6) {
      line.lane->follow(event.past);
      line.after.insert(event.ends.begin(), event.ends.end());
    } else if (kind == 7) {
      const Line& other = lines_[below(lines_.size())];
      line.lane->follow(other.lane->past());
      const std::set<std::size_t> ends = other.ends();
      line.after.insert(ends.begin(), ends.end());
    } else if (kind == 8 && lines_.size() > 1) {
      lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(below(lines_.size())));
      begin_lane();
    } else if (kind == 9) {
      line.lane->restart();
      line.after.clear();
      line.last.clear();
    }
  }

  int conflicts = 0;
  int clean = 0;

 private:
  struct Line {
    std::unique_ptr<Lane> lane = std::make_unique<Lane>();
    std::set<std::size_t> after;  // what the next operation waits for
    std::set<std::size_t> last;   // the newest operation

    std::set<std::size_t> ends() const {
      std::set<std::size_t> all = after;
      all.insert(last.begin(), last.end());
      return all;
    }
  };
  struct Mark {
    Past past;
    std::set<std::size_t> ends;
  };
  struct Block {
    History history;
    History neighbour;  // of what others did by another block
    std::vector<Touch> touches;
  };

  std::size_t below(std::size_t bound) { return random_() % bound; }

  void begin_lane() { lines_.emplace_back(); }

  // Whether one operation comes before what comes after `ends`.
  bool before(std::size_t operation, const std::set<std::size_t>& ends) const {
    std::set<std::size_t> seen = ends;
    std::vector<std::size_t> open(ends.begin(), ends.end());
    while (!open.empty()) {
      const std::size_t next = open.back();
      open.pop_back();
      if (next == operation) return true;
      for (const std::size_t earlier : graph_[next]) {
        if (seen.insert(earlier).second) open.push_back(earlier);
      }
    }
    return false;
  }

  void access() {
    Line& line = lines_[below(lines_.size())];
    Block& block = blocks_[below(blocks_.size())];
    const auto access = static_cast<Access>(1 + below(3));
    Touch touch{graph_.size(), access != Access::read, {}};
    std::unique_ptr<Footprint> where;
    if (below(2)) {
      const std::size_t low = below(block_bytes);
      const std::size_t high = low + 1 + below(block_bytes - low);
      where = std::make_unique<Footprint>(range(low, high));
      for (std::size_t byte = low; byte < high; ++byte) touch.bytes.insert(static_cast<std::ptrdiff_t>(byte));
    } else {
      RandomArray array(random_, 1 + static_cast<std::int64_t>(below(3)), Overlap::allowed);
      where = std::make_unique<Footprint>(static_cast<std::int64_t>(array.first), array.layout);
      for (std::int64_t i = 0; i < array.layout.size(); ++i) {
        const std::ptrdiff_t place = element(array.elements(0), i) - array.memory.data();
        for (std::int64_t k = 0; k < array.layout.itemsize; ++k) touch.bytes.insert(place + k);
      }
    }
    const std::set<std::size_t> ends = line.ends();
    bool expected = false;
    for (const Touch& other : block.touches) {
      const bool shares = std::any_of(other.bytes.begin(), other.bytes.end(),
                                      [&touch](std::ptrdiff_t byte) { return touch.bytes.count(byte) != 0; });
      expected |= shares && (touch.writes || other.writes) && !before(other.operation, ends);
    }
    if (below(8) == 0) static_cast<void>(block.history.join(std::move(block.neighbour.uses())));
    const auto conflicts_in = [&](const History& history) {
      return !conflicting(history, *line.lane, access, *where).empty();
    };
    CHECK_EQUAL(conflicts_in(block.history) || conflicts_in(block.neighbour), expected);
    (expected ? conflicts : clean) += 1;
    note(below(4) == 0 ? block.neighbour : block.history, line.lane->advance(), access, *where);
    graph_.push_back(ends);
    line.after.clear();
    line.last = {touch.operation};
    block.touches.push_back(std::move(touch));
  }

  std::mt19937 random_;
  std::vector<Line> lines_;
  std::vector<Mark> events_;
  std::vector<Block> blocks_;
  std::vector<std::set<std::size_t>> graph_;  // of each operation, those that it comes right after
};

TEST(conflicts_are_those_of_the_graph) {
  int conflicts = 0;
  int clean = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Program program(seed);
    for (int step = 0; step < 50; ++step) program.step();
    conflicts += program.conflicts;
    clean += program.clean;
  }
  CHECK(conflicts > 10'000 && clean > 10'000);
}

// Bytes of a block that begins some way into another, as elements of that one, and as plainly as can be.
struct Place {
  Footprint where;
  std::set<std::int64_t> before;  // the block's beginning
  std::set<std::int64_t> bytes;

  explicit Place(std::mt19937& random) : where(0, 0) {
    RandomArray array(random, 1 + static_cast<std::int64_t>(random() % 3), Overlap::none);
    const auto distance = static_cast<std::int64_t>(random() % 64);
    where = Footprint(static_cast<std::int64_t>(array.first), array.layout).moved(-distance);
    for (std::int64_t i = 0; i < array.layout.size(); ++i) {
      const std::int64_t first = element(array.elements(0), i) - array.memory.data() - distance;
      for (std::int64_t byte = first; byte < first + array.layout.itemsize; ++byte) {
        (byte < 0 ? before : bytes).insert(byte);
      }
    }
  }
};

bool share(const std::set<std::int64_t>& a, const std::set<std::int64_t>& b) {
  return std::any_of(a.begin(), a.end(), [&b](std::int64_t byte) { return b.count(byte) != 0; });
}

TEST(footprints_in_blocks_that_overlap_are_those_of_their_bytes) {
  int shared = 0;
  int apart = 0;
  int contained = 0;
  std::mt19937 random(1);
  for (int round = 0; round < 10'000; ++round) {
    const Place a(random);
    const Place b(random);
    if (share(a.bytes, b.bytes)) {
      CHECK(a.where.overlaps(b.where) && b.where.overlaps(a.where));
      ++shared;
    } else if (!share(a.before, b.before)) {
      CHECK(!a.where.overlaps(b.where) && !b.where.overlaps(a.where));
      ++apart;
    }
    for (const Place& other : {b, Place(random), a}) {
      if (other.bytes.empty() || !a.where.contains(other.where)) continue;
      CHECK(std::includes(a.bytes.begin(), a.bytes.end(), other.bytes.begin(), other.bytes.end()));
      ++contained;
    }
  }
  CHECK(shared > 1000 && apart > 1000 && contained > 1000);
}

TEST(a_view_of_the_same_steps_beside_another_is_not_in_it) {
  const std::int64_t shape = 8;
  Layout every_other = row_major(1, &shape, 4);
  every_other.strides[0] = 8;
  const Footprint odd = Footprint(4, every_other).moved(-16);  // as a block has them that begins 16 bytes later
  CHECK(!Footprint(0, every_other).contains(odd));
  CHECK(!Footprint(0, every_other).overlaps(odd));
  CHECK(odd.overlaps({4, 8}));
}

TEST(a_view_of_other_steps_from_the_same_element_on_is_not_in_it) {
  const std::int64_t shape = 4;
  const auto stepped = [&](std::int64_t step) {
    Layout layout = row_major(1, &shape, 1);
    layout.strides[0] = step;
    return Footprint(0, layout);
  };
  const Footprint wide = stepped(4);
  CHECK(wide.contains(stepped(4)));
  CHECK(!wide.contains(stepped(2)));
  CHECK(!wide.contains(stepped(3)));

  Lane earlier;
  Lane later;
  History history;
  note(history, earlier.advance(), Access::write, stepped(2));
  later.follow(earlier.past());
  note(history, later.advance(), Access::write, wide);
  CHECK_EQUAL(conflicting(history, Lane(), Access::read, {2, 3}).size(), 1U);  // which only the earlier one wrote
}

TEST(an_event_keeps_what_its_record_found) {
  Lane a;
  Lane b;
  History history;
  note(history, a.advance(), Access::write, range(0, 8));
  const Past record = a.past();
  note(history, a.advance(), Access::write, range(8, 16));
  b.follow(record);
  CHECK(conflicting(history, b, Access::read, range(0, 8)).empty());
  CHECK_EQUAL(conflicting(history, b, Access::read, range(0, 9)).size(), 1U);
}

TEST(a_whole_takes_the_place_of_all_its_parts) {
  Lane a;
  Lane b;
  History history;
  for (std::size_t part = 0; part < 4; ++part) note(history, a.advance(), Access::write, range(part, part + 1));
  b.follow(a.past());
  note(history, b.advance(), Access::write, range(0, 4));
  CHECK_EQUAL(history.uses().size(), 1U);
}

TEST(of_accesses_that_join_in_any_order_those_stay_that_matter) {
  Lane a;
  const auto access = [&a](std::size_t low, std::size_t high, Access access = Access::write) {
    return Use{nullptr, 0, access, false, false, a.advance(), range(low, high)};
  };
  const std::vector<Use> uses = {access(0, 8), access(2, 6), access(2, 6, Access::read), access(0, 4)};
  for (std::vector<std::size_t> order : {std::vector<std::size_t>{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}}) {
    History history;
    std::size_t left = 0;
    for (int again = 0; again < 2; ++again) {
      for (const std::size_t one : order) left += history.join({uses[one]}).size();
      CHECK_EQUAL(history.uses().size(), 4U);
    }
    left += history.join({access(0, 8)}).size();
    left += history.join(uses).size();
    CHECK_EQUAL(history.uses().size(), 1U);
    CHECK_EQUAL(left, 12U);
  }
}

TEST(a_record_used_again_is_another_lane) {
  Lane a;
  Lane b;
  History history;
  note(history, a.advance(), Access::write, range(0, 8));
  a.restart();
  CHECK_EQUAL(conflicting(history, a, Access::read, range(0, 8)).size(), 1U);
  a.advance();
  b.follow(a.past());
  CHECK_EQUAL(conflicting(history, b, Access::read, range(0, 8)).size(), 1U);
}

TEST(a_number_taken_over_tells_nothing_of_the_new_lane) {
  Lane reader;
  for (const bool ends : {false, true}) {
    auto before = std::make_unique<Lane>();
    for (int i = 0; i < 10; ++i) before->advance();
    reader.follow(before->past());
    const std::uint32_t number = before->past().lane;
    if (!ends) {
      before->restart();
      CHECK_EQUAL(before->past().lane, number);  // nobody remembers a moment of it
      CHECK(!reader.past().covers(before->advance()));
    }
    before.reset();
    std::vector<std::unique_ptr<Lane>> lanes;
    do {
      lanes.push_back(std::make_unique<Lane>());
    } while (lanes.back()->past().lane != number);
    CHECK(!reader.past().covers(lanes.back()->advance()));
  }
}

TEST(lanes_that_come_and_go_leave_no_growth) {
  Lane task;
  History history;
  for (int round = 0; round < 10'000; ++round) {
    Lane lane;
    lane.follow(task.past());
    for (int i = 0; i < 100; ++i) {
      CHECK(conflicting(history, lane, Access::read_write, range(0, 64)).empty());
      note(history, lane.advance(), Access::read_write, range(0, 64));
    }
    task.follow(lane.past());
    CHECK_EQUAL(history.uses().size(), 1U);
    CHECK(task.past().clock.size() <= 4);
  }
}

}  // namespace
}  // namespace anabranch
