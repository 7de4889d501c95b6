#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "anabranch/backend.hpp"
#include "anabranch/graph.hpp"

namespace anabranch {

class CaptureBackend;
class CaptureStream;

// How many captures there are.
extern std::atomic<int> captures;
inline bool capturing() noexcept { return captures.load(std::memory_order_relaxed) != 0; }

// Records what is put into streams, instead of it, as a graph: a backend that wraps another. A stream that is captured
// has a `CaptureStream` in its stead (`Stream::recording`), whose backend's verbs add nodes; nothing is asked of a
// driver. So other threads are none of its business, and the other way round.
//
// Order within a capture is found out by the same lanes and histories as outside, which are apart from those: the
// capture streams have lanes of their own, and memory is stood in for by storages of the capture (`shadow`).
class Capture final : public RefCounted {
 public:
  // Of a stream, which may not take part in another capture. `outer`: the capture that the stream takes part in, for a
  // graph within its graph; until that has ended, nothing may be put into the outer one, and nothing be allocated.
  // Throws Error(capture).
  static Ref<Capture> begin(Stream& origin, Ref<Capture> outer = nullptr);
  ~Capture() override;

  // Ends it. All streams are as they were. Throws Error(capture) with the reason if it has ended already.
  Ref<Graph> end(Ref<Works>& works);
  // Ends it without a graph, for a reason that who uses it later is told. Any thread; the first call counts.
  void abandon(const std::string& reason) noexcept;
  // From now on nothing but captured work may be enqueued by the task, nor a host look at memory: for work whose every
  // replay has to stand for a call.
  void make_exclusive() noexcept { exclusive_.store(true, std::memory_order_relaxed); }
  bool exclusive() const noexcept { return exclusive_.load(std::memory_order_relaxed); }
  bool active() const noexcept { return active_.load(std::memory_order_acquire); }
  std::string reason() const;

  // Throws the error that something cannot be captured. On the thread that began the capture, that ends it.
  [[noreturn]] void refuse(const std::string& what);

  // What gets the stream's work: its recorder while it is captured, else itself. A recorder stays for this thread's
  // next few calls, so that another thread may end the capture meanwhile, and begin one.
  static Stream& recorder_of(Stream& stream);
  // The stream that records for `stream`, which takes part from now on if `target` does: what is waited for.
  static Stream& follower(Stream& stream, Stream& target);

  // The same accesses, of what stands for the memory within the capture, which keeps the memory.
  void shadow(std::span<const Touch> touches, std::vector<Touch>& shadows);
  // Whether a host cannot have what is in the memory, since captured work writes it.
  bool writes(Storage& storage) const;
  // The operation at that point of the stream, or without one the newest, makes those accesses, of the memory itself.
  void note(const Stream& stream, std::span<const Touch> touches, Point point = 0);
  // The storage has memory that was allocated here, by the newest operation of the stream.
  void own(Storage& storage, Stream& stream);
  // Whether a stream of the device takes part.
  bool involves(const Backend& device) const;
  // A node of a kind that backends have no verb for.
  Point add(Stream& stream, NodeKind kind, std::string name, Work::What&& what);
  // What the node at that point of the stream, or without one the newest, was made from.
  void tell(const Stream& stream, Ref<RefCounted> origin, Point point = 0);

 private:
  friend class CaptureBackend;
  friend class CaptureStream;
  static constexpr std::uint32_t none = UINT32_MAX;

  explicit Capture(Ref<Capture> outer);
  CaptureStream& join(Stream& real);
  // Whether it is the body of a branch or loop of that one, or the body of a body.
  bool within(const Capture* other) const noexcept;
  Error error() const;

  // What a capture that has ended held. It may end Python objects, and streams: to be let go of with no lock held.
  struct Held;
  // With the lock: it has ended. No stream takes part any more.
  Held detach() noexcept;
  // Without: the rest of that.
  void leave(Held held) noexcept;

  // With the lock.
  void check() const;
  Point push(CaptureStream& stream, NodeKind kind, std::string name, std::size_t bytes, Work::What&& what);
  std::uint32_t add_node(NodeKind kind, std::string name, Backend& device, std::size_t bytes,
                         std::vector<std::uint32_t> after, Moment when, Work::What&& what);
  void reduce(std::vector<std::uint32_t>& nodes) const;
  CaptureBackend& backend_of(Backend& real);

  // For the backends.
  Allocation allocate(CaptureStream& stream, std::size_t bytes, MemoryKind kind);
  void free(std::byte* pointer, std::vector<Use>& uses) noexcept;
  std::vector<Ref<Storage>> settle();
  void release_blocks() noexcept;

  mutable std::mutex mutex_;
  std::atomic<bool> active_{true};
  std::atomic<bool> exclusive_{false};
  bool suspended_ = false;  // while a graph within is recorded
  std::string reason_;
  const std::uint64_t thread_;
  const Ref<Capture> outer_;
  Backend* home_ = nullptr;

  std::vector<GraphNode> nodes_;
  std::vector<Moment> moments_;  // of the nodes
  std::vector<Ref<Work>> works_;
  std::vector<std::unique_ptr<CaptureBackend>> backends_;
  std::vector<Ref<CaptureStream>> streams_;
  std::vector<Ref<CaptureStream>> retired_;  // of graphs within, which other threads may still look at

  // Memory by where it is, and how much.
  using Place = std::tuple<const Backend*, const std::byte*, std::size_t>;
  struct Operand {
    std::vector<Ref<Storage>> kept;  // empty for memory of this capture's, of which it is to be known when it goes
    Ref<Storage> shadow;
    bool written = false;
    std::uint32_t own = none;
  };
  Operand& operand(Storage& storage);
  Operand& find_operand(Storage& storage);
  std::map<Place, Operand> operands_;
  // Those of the newest storages, by their addresses; emptied when one goes.
  struct Recent {
    const Storage* storage = nullptr;
    Operand* operand = nullptr;
  };
  std::array<Recent, 64> recent_{};

  // Memory of the capture's: in use, or free for what comes after some nodes.
  struct Own {
    Backend* device = nullptr;
    std::byte* pointer = nullptr;
    std::size_t bytes = 0;
    MemoryKind kind = MemoryKind::device;
    bool used = true;
    std::uint32_t node = none;         // that allocated or freed it
    std::vector<std::uint32_t> users;  // those that no other one comes after
    Storage* storage = nullptr;
    std::vector<Use> uses = {};  // those that ran at once, of what is free
  };
  std::vector<Own> own_;

  struct Access_ {
    std::uint32_t node;
    std::uint32_t own;  // or `none`
    Storage* storage;
    ByteRange bytes;
    Access access;
  };
  std::vector<Access_> accesses_;
};

// The capture's recorder for a stream of a device. Its points count what it got, waits included.
class CaptureStream final : public Stream {
 public:
  CaptureStream(CaptureBackend& backend, Capture& capture, Stream& real);
  std::uintptr_t handle() const noexcept override { return handle_; }
  Activity activity() const noexcept override { return {}; }

 private:
  friend class Capture;
  friend class CaptureBackend;

  Ref<Capture> keeps_;
  // Until the capture ends, which guards them.
  Ref<Stream> real_;
  Ref<Stream> before_;  // the recorder of an outer capture
  const std::uintptr_t handle_;
  // What the next node comes after: one node, or those of a set.
  struct Stop {
    std::uint32_t node = Capture::none;
    std::vector<std::uint32_t> set = {};
  };
  void add_tips(Point point, std::vector<std::uint32_t>& tips) const {
    const Stop& stop = stops_[point];
    if (stop.node != Capture::none) return tips.push_back(stop.node);
    tips.insert(tips.end(), stop.set.begin(), stop.set.end());
  }
  std::vector<std::uint32_t> tips() const {
    std::vector<std::uint32_t> found;
    add_tips(stops_.size() - 1, found);
    return found;
  }
  // Both take up a point.
  void stop_at(std::uint32_t node) { stops_.push_back({node}); }
  void stop_at(std::vector<std::uint32_t> set) { stops_.push_back({Capture::none, std::move(set)}); }
  // The newest node; `none` if there is no node yet. Other threads may let the stream wait, or give it more.
  std::uint32_t newest() const noexcept {
    const auto last =
        std::find_if(stops_.rbegin(), stops_.rend(), [](const Stop& stop) { return stop.node != Capture::none; });
    return last == stops_.rend() ? Capture::none : last->node;
  }
  std::uint32_t node_at(Point point) const noexcept { return point == 0 ? newest() : stops_[point].node; }

  std::vector<Stop> stops_{{}};  // as of each point
};

}  // namespace anabranch
