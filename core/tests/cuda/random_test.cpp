// Random programs over two GPUs and pinned memory, with every kind of stream, events, gates, and memory that comes and
// goes. Each access waits for the last one to its block, so that the result is that of running them in program order.
#include <array>
#include <deque>
#include <random>
#include <string>

#include "device.hpp"
#include "threads.hpp"

namespace anabranch::cuda {
namespace {

using namespace check;

constexpr std::size_t size = 256;

class Program {
 public:
  explicit Program(unsigned seed) : random_(seed) {
    for (CudaBackend* device : {&device_, &second_}) {
      for (int i = 0; i < 2; ++i) streams_.push_back(stream(*device));
      streams_.push_back(stream(*device, "blocking", false));
      streams_.push_back(device->default_stream(StreamRole::legacy));
      streams_.push_back(device->default_stream(StreamRole::per_thread));
    }
    for (int i = 0; i < 6; ++i) blocks_.push_back(make());
  }

  void step() {
    switch (below(9)) {
      case 0:
      case 1:
      case 2:
        return fill();
      case 3:
      case 4:
        return copy();
      case 5:
        return swap_events();
      case 6:
        gates_.push_back(std::make_unique<Gate>(*any_stream()));
        return;
      case 7:
        if (!gates_.empty()) gates_.erase(gates_.begin() + static_cast<std::ptrdiff_t>(below(gates_.size())));
        return;
      default:
        if (below(4) == 0) streams_[below(2) * 5 + below(2)] = stream(below(2) ? device_ : second_);
        blocks_[below(blocks_.size())] = make();
    }
  }

  // Everything that was held goes on, and each block holds what the last write put there.
  void check() {
    gates_.clear();
    const auto back = Storage::allocate(device_, nullptr, size, MemoryKind::pinned);
    for (Block& block : blocks_) {
      const Ref<Stream> reader = stream(*block.device);
      access(block, *reader);
      const Point point =
          block.device->copy(*reader, bytes(back->pointer(), size), bytes(block.memory->pointer(), size), size);
      done(block, *reader, point, Access::read);
      finish(*reader, point);
      CHECK_EQUAL(static_cast<int>(back->pointer()[0]), block.value);
      CHECK_EQUAL(static_cast<int>(back->pointer()[size - 1]), block.value);
    }
  }

 private:
  struct Block {
    CudaBackend* device;
    Ref<Storage> memory;
    int value;
    Ref<Stream> last;
    Point point;
  };

  std::size_t below(std::size_t bound) { return random_() % bound; }
  const Ref<Stream>& any_stream() { return streams_[below(streams_.size())]; }

  const Ref<Stream>& stream_of(const CudaBackend& device) {
    while (true) {
      const Ref<Stream>& found = any_stream();
      if (&found->backend() == &device) return found;
    }
  }

  Block make() {
    CudaBackend& device = below(2) ? device_ : second_;
    const Ref<Stream> stream = stream_of(device);
    Block block{&device, Storage::allocate(device, stream.get(), size, MemoryKind::device), 0, nullptr, 0};
    write(block, *stream);
    return block;
  }

  void access(const Block& block, Stream& stream) {
    if (block.last && block.last.get() != &stream) stream.backend().wait(stream, *block.last, block.point);
  }

  void done(Block& block, Stream& stream, Point point, Access access) {
    block.memory->accesses().note(stream, point, access, {0, size});
    block.last = Ref<Stream>::share(&stream);
    block.point = point;
  }

  void write(Block& block, Stream& stream) {
    const auto value = static_cast<std::byte>(1 + below(100));
    access(block, stream);
    const Point point = stream.backend().fill(stream, bytes(block.memory->pointer(), size), &value, size);
    done(block, stream, point, Access::write);
    block.value = static_cast<int>(value);
  }

  void fill() {
    Block& block = blocks_[below(blocks_.size())];
    write(block, *stream_of(*block.device));
  }

  void copy() {
    Block& to = blocks_[below(blocks_.size())];
    Block& from = blocks_[below(blocks_.size())];
    if (&to == &from) return;
    const Ref<Stream> stream = stream_of(below(2) ? *to.device : *from.device);
    access(to, *stream);
    access(from, *stream);
    Elements source = bytes(from.memory->pointer(), size);
    source.home = from.device;
    Elements target = bytes(to.memory->pointer(), size);
    target.home = to.device;
    const Point point = stream->backend().copy(*stream, target, source, size);
    done(from, *stream, point, Access::read);
    done(to, *stream, point, Access::write);
    to.value = from.value;
  }

  // Order that the program does not need, but has to get along with.
  void swap_events() {
    const Ref<Stream> recorded = any_stream();
    Event event(recorded->backend(), {});
    event.record(*recorded);
    event.wait(*any_stream());
  }

  CudaBackend& device_ = device();
  CudaBackend& second_ = second_device();
  std::mt19937 random_;
  std::vector<Ref<Stream>> streams_;
  std::vector<Block> blocks_;
  std::deque<std::unique_ptr<Gate>> gates_;
};

void run(unsigned seed) {
  Program program(seed);
  for (int round = 0; round < 4; ++round) {
    for (int step = 0; step < 40; ++step) program.step();
    program.check();
  }
}

TEST(random_programs_give_the_result_of_program_order) {
  for (unsigned seed = 0; seed < 150; ++seed) run(seed);
}

// They share the legacy streams, and through those all blocking ones are in order.
TEST(random_programs_in_several_threads_do_too) {
  device();
  second_device();
  std::array<std::string, 4> failures;
  in_threads(4, [&failures](int number) {
    try {
      for (unsigned seed = 0; seed < 40; ++seed) run(1000 + 100 * static_cast<unsigned>(number) + seed);
    } catch (const Failed& failed) {
      failures.at(static_cast<std::size_t>(number)) = failed.what;
    }
  });
  for (const std::string& failure : failures) CHECK_EQUAL(failure, "");
}

}  // namespace
}  // namespace anabranch::cuda
