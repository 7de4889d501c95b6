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
#include "anabranch/graph/graph.hpp"

namespace anabranch {

class CaptureBackend;
class CaptureStream;

// The number of active captures.
extern std::atomic<int> captures;
inline bool capturing() noexcept { return captures.load(std::memory_order_relaxed) != 0; }

// Records enqueued operations as a graph instead of running them: a backend that wraps another. A `CaptureStream` takes
// the place of each captured stream (`Stream::recording`), and the verbs of its backend add nodes without a driver
// call. A capture therefore neither affects other threads nor is affected by them.
//
// Lanes and histories of their own track the order within a capture: those of the capture streams, and of storages of
// the capture that stand in for the memory (`shadow`).
class Capture final : public RefCounted {
 public:
  // Begins a capture of a stream that takes part in no other. `outer`: the capture that the stream takes part in, for a
  // graph within its graph. Until the inner capture ends, the outer one accepts no work and no allocation. Throws
  // Error(capture).
  static Ref<Capture> begin(Stream& origin, Ref<Capture> outer = nullptr);
  ~Capture() override;

  // Ends the capture and restores all streams. Throws Error(capture), with the reason, if it has already ended.
  Ref<Graph> end(Ref<Works>& works);
  // Ends the capture without a graph; later uses report the reason. Any thread may call it; only the first call has an
  // effect.
  void abandon(const std::string& reason) noexcept;
  // From now on the task may enqueue nothing but captured work, and the host may not access memory. For work whose
  // replays each stand for a call.
  void make_exclusive() noexcept { exclusive_.store(true, std::memory_order_relaxed); }
  bool exclusive() const noexcept { return exclusive_.load(std::memory_order_relaxed); }
  bool active() const noexcept { return active_.load(std::memory_order_acquire); }
  std::string reason() const;

  // Throws the error that something cannot be captured. Also ends the capture if called on the thread that began it.
  [[noreturn]] void refuse(const std::string& what);

  // The stream that takes `stream`'s work: its recorder while it is captured, else itself. This thread keeps a recorder
  // for its next few calls, so another thread may meanwhile end the capture and begin a new one.
  static Stream& recorder_of(Stream& stream);
  // The stream that records for `stream` when it waits for `target`. If `target` is captured, `stream` joins the
  // capture.
  static Stream& follower(Stream& stream, Stream& target);

  // The same accesses to the shadows of the memory within the capture, which keeps the memory alive.
  void shadow(std::span<const Touch> touches, std::vector<Touch>& shadows);
  // Whether the host cannot access the memory because captured work writes it.
  bool writes(Storage& storage) const;
  // Records accesses, to the memory itself, by the operation at that point of the stream; 0: by the newest operation.
  void note(const Stream& stream, std::span<const Touch> touches, Point point = 0);
  // Records that the newest operation of the stream allocated the storage's memory in this capture.
  void own(Storage& storage, Stream& stream);
  // Whether a stream of the device takes part.
  bool involves(const Backend& device) const;
  // Adds a node of a kind for which backends have no verb.
  Point add(Stream& stream, NodeKind kind, std::string name, Work::What&& what);
  // Sets the origin of the node at that point of the stream; 0: of the newest node.
  void set_origin(const Stream& stream, Ref<RefCounted> origin, Point point = 0);

 private:
  friend class CaptureBackend;
  friend class CaptureStream;
  static constexpr std::uint32_t none = UINT32_MAX;

  explicit Capture(Ref<Capture> outer);
  CaptureStream& join(Stream& real);
  // Whether this captures the body of a branch or loop of `other`, at any depth.
  bool within(const Capture* other) const noexcept;
  Error error() const;

  // Everything that an ended capture held. Destroy it with no lock held: it may destroy Python objects and streams.
  struct Held;
  // Requires the lock. Ends the capture; no stream takes part any more.
  Held detach() noexcept;
  // The rest of ending it. Requires that no lock is held.
  void leave(Held held) noexcept;

  // These require the lock.
  void check() const;
  Point push(CaptureStream& stream, NodeKind kind, std::string name, std::size_t bytes, Work::What&& what);
  std::uint32_t add_node(NodeKind kind, std::string name, Backend& device, std::size_t bytes,
                         std::vector<std::uint32_t> after, Moment when, Work::What&& what);
  void reduce(std::vector<std::uint32_t>& nodes) const;
  CaptureBackend& backend_of(Backend& real);

  // For the capture backends.
  Allocation allocate(CaptureStream& stream, std::size_t bytes, MemoryKind kind);
  void free(std::byte* pointer, std::vector<Use>& uses) noexcept;
  std::vector<Ref<Storage>> hand_over_living();
  void release_blocks() noexcept;

  mutable std::mutex mutex_;
  std::atomic<bool> active_{true};
  std::atomic<bool> exclusive_{false};
  bool suspended_ = false;  // while a graph within is captured
  std::string reason_;
  const std::uint64_t thread_;
  const Ref<Capture> outer_;
  Backend* home_ = nullptr;

  std::vector<GraphNode> nodes_;
  std::vector<Moment> moments_;  // of the nodes
  std::vector<Ref<Work>> works_;
  std::vector<std::unique_ptr<CaptureBackend>> backends_;
  std::vector<Ref<CaptureStream>> streams_;
  std::vector<Ref<CaptureStream>> retired_;  // of captures within; other threads may still use them

  // Memory by device, address and size.
  using Place = std::tuple<const Backend*, const std::byte*, std::size_t>;
  struct Operand {
    std::vector<Ref<Storage>> kept;  // empty for the capture's own memory, whose release the capture must see
    Ref<Storage> shadow;
    bool written = false;
    std::uint32_t own = none;
  };
  Operand& operand(Storage& storage);
  Operand& find_operand(Storage& storage);
  std::map<Place, Operand> operands_;
  // A cache of the operands of recent storages, by address; cleared when an operand is removed.
  struct Recent {
    const Storage* storage = nullptr;
    Operand* operand = nullptr;
  };
  std::array<Recent, 64> recent_{};

  // Memory that the capture allocated: in use, or free for operations after certain nodes.
  struct Own {
    Backend* device = nullptr;
    std::byte* pointer = nullptr;
    std::size_t bytes = 0;
    MemoryKind kind = MemoryKind::device;
    bool used = true;
    std::uint32_t node = none;         // the node that allocated or freed it
    std::vector<std::uint32_t> users;  // nodes that use it, without those that another user follows
    Storage* storage = nullptr;
    std::vector<Use> uses = {};  // of free memory: uses outside the capture
  };
  std::vector<Own> own_;

  struct Access_ {
    std::uint32_t node;
    std::uint32_t own;  // or `none`
    Storage* storage;
    Footprint where;
    Access access;
  };
  std::vector<Access_> accesses_;
};

// A capture's recorder for a stream. Its points count the operations that it took, including waits.
class CaptureStream final : public Stream {
 public:
  CaptureStream(CaptureBackend& backend, Capture& capture, Stream& real);
  std::uintptr_t handle() const noexcept override { return handle_; }
  Activity activity() const noexcept override { return {}; }

 private:
  friend class Capture;
  friend class CaptureBackend;

  Ref<Capture> keeps_;
  // Guarded by the capture; null once it has ended.
  Ref<Stream> real_;
  Ref<Stream> before_;  // the recorder of an outer capture
  const std::uintptr_t handle_;
  // The predecessors of the next node: one node or a set.
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
  // Each adds a point.
  void stop_at(std::uint32_t node) { stops_.push_back({node}); }
  void stop_at(std::vector<std::uint32_t> set) { stops_.push_back({Capture::none, std::move(set)}); }
  // The newest node, or `none`. Other threads may have added waits or nodes.
  std::uint32_t newest() const noexcept {
    const auto last =
        std::find_if(stops_.rbegin(), stops_.rend(), [](const Stop& stop) { return stop.node != Capture::none; });
    return last == stops_.rend() ? Capture::none : last->node;
  }
  std::uint32_t node_at(Point point) const noexcept { return point == 0 ? newest() : stops_[point].node; }

  std::vector<Stop> stops_{{}};  // as of each point
};

}  // namespace anabranch
