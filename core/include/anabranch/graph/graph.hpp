#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "anabranch/hazard/history.hpp"
#include "anabranch/kernel/kernel.hpp"
#include "anabranch/lock.hpp"
#include "anabranch/memory/layout.hpp"
#include "anabranch/memory/memory.hpp"
#include "anabranch/ref.hpp"
#include "anabranch/stream/event.hpp"
#include "anabranch/stream/host.hpp"
#include "anabranch/stream/stream.hpp"

namespace anabranch {

class Backend;
class Graph;
struct Works;

enum class NodeKind : std::uint8_t {
  kernel,
  copy,
  fill,
  alloc,     // start of use of memory that the graph owns; nothing runs
  free,      // end of that use
  external,  // work that another library enqueues
  host,      // a host function
  branch,    // one of two graphs, by a flag
  loop,      // a graph, for as long as a flag is not 0
  graph,     // a nested graph
};

// The argument slots of `Backend::launch`. Up to 16 are stored inline.
class LaunchArguments {
 public:
  LaunchArguments(std::span<const std::uint64_t> slots) : count_(slots.size()) {
    if (count_ > few_.size()) many_.resize(count_);
    std::copy(slots.begin(), slots.end(), data());
  }
  LaunchArguments(std::initializer_list<std::uint64_t> slots)
      : LaunchArguments(std::span<const std::uint64_t>(slots.begin(), slots.size())) {}
  LaunchArguments() : LaunchArguments(std::span<const std::uint64_t>()) {}
  std::uint64_t* data() noexcept { return many_.empty() ? few_.data() : many_.data(); }
  const std::uint64_t* data() const noexcept { return many_.empty() ? few_.data() : many_.data(); }
  std::size_t size() const noexcept { return count_; }
  std::uint64_t& operator[](std::size_t slot) noexcept { return data()[slot]; }
  const std::uint64_t& operator[](std::size_t slot) const noexcept { return data()[slot]; }
  operator std::span<const std::uint64_t>() const noexcept { return {data(), count_}; }

 private:
  std::size_t count_;
  std::array<std::uint64_t, 16> few_;
  std::vector<std::uint64_t> many_;
};

// The work of nodes of these kinds.
struct KernelWork {
  Ref<Kernel> kernel;
  std::variant<LaunchShape, LaunchGrid> grid;
  LaunchArguments arguments;
};
struct CopyWork {
  Elements dst;
  Elements src;
  std::int64_t count = 0;
};
struct FillWork {
  Elements dst;
  std::byte value[16] = {};
  std::int64_t count = 0;
};
// A host function, called once in each replay.
class HostWork : public RefCounted {
 public:
  // Makes the operation of one replay, given the context of its works. Any thread may call it, including a worker: it
  // runs no Python.
  virtual Ref<HostOperation> make(const Ref<RefCounted>& context) noexcept = 0;
};
// Work that another library enqueues into a stream of a device that such libraries use.
class ExternalWork : public RefCounted {
 public:
  explicit ExternalWork(std::string name) : name(std::move(name)) {}
  // Has the library enqueue it, with the device's context current. `stream`: the driver's handle; the driver may
  // capture it. Throws with nothing enqueued. Any thread may call it, including the poller: it runs no Python.
  virtual void enqueue(std::uintptr_t stream) = 0;

  const std::string name;
};
// Nested graphs with their works. The second of a branch may be null, which does nothing.
struct NestedWork {
  const std::int32_t* flag = nullptr;  // on the node's device; null for a graph
  Ref<Graph> body;
  Ref<Works> works;
  Ref<Graph> otherwise = nullptr;
  Ref<Works> otherwise_works = nullptr;
};

// A value on the heap, for large and rare alternatives of a variant: the others stay small.
template <class T>
class Boxed {
 public:
  Boxed(T value) : value_(std::make_unique<T>(std::move(value))) {}
  Boxed(const Boxed& other) : Boxed(*other) {}
  Boxed(Boxed&&) noexcept = default;
  Boxed& operator=(Boxed other) noexcept {
    value_.swap(other.value_);
    return *this;
  }
  ~Boxed() = default;
  T& operator*() noexcept { return *value_; }
  const T& operator*() const noexcept { return *value_; }
  const T* operator->() const noexcept { return value_.get(); }

 private:
  std::unique_ptr<T> value_;  // null once moved from
};

// A version that was never used before. An object with a version has not changed since it got it.
std::uint64_t next_version() noexcept;

// The work of a node. Shared works are immutable; a change gives a new version.
struct Work final : RefCounted {
  using What = std::variant<std::monostate, KernelWork, Boxed<CopyWork>, Boxed<FillWork>, Ref<ExternalWork>,
                            Ref<HostWork>, NestedWork>;
  explicit Work(What&& what) : what(std::move(what)) {}
  // The work of one kind; null if the node is of another kind.
  const CopyWork* copy() const noexcept { return unboxed(std::get_if<Boxed<CopyWork>>(&what)); }
  const FillWork* fill() const noexcept { return unboxed(std::get_if<Boxed<FillWork>>(&what)); }

  What what;
  std::uint64_t version = next_version();  // unique among the works of its node

 private:
  template <class T>
  static const T* unboxed(const Boxed<T>* box) noexcept {
    return box ? &**box : nullptr;
  }
};

// The works of all nodes of a graph, by node number. A replay keeps the works that it was launched with. Shared works
// are immutable; a change gives a new version.
struct Works final : RefCounted {
  std::vector<Ref<Work>> of;
  std::uint64_t version = next_version();  // unique
  Ref<RefCounted> context;                 // passed to the host functions of a replay
};

// Changes works for later replays: in place, without allocating, if nothing else refers to them; otherwise in copies.
class Change {
 public:
  explicit Change(Ref<Works>& works) noexcept : works_(works) {}
  // The works with the changes so far.
  const Works& now() const noexcept { return *works_; }
  // The work of a node, for changing. Throws std::bad_alloc, with nothing changed.
  Work::What& what(std::uint32_t node);
  bool begun() const noexcept { return begun_; }

 private:
  Ref<Works>& works_;
  bool begun_ = false;
};

struct GraphNode {
  NodeKind kind = NodeKind::kernel;
  std::string name;
  Backend* device = nullptr;         // where it runs
  std::vector<std::uint32_t> after;  // direct predecessors, all with lower numbers
  std::size_t bytes = 0;             // size, of memory nodes
  Ref<RefCounted> origin = nullptr;  // the layer above's source of the node
};

// An access to memory that a node makes.
struct NodeTouch {
  std::uint32_t node = 0;
  Storage* storage = nullptr;
  Footprint where = {0, 0};
  Access access = Access::read;
};
// The same access, of an operation. As long as a copy of the other lives.
inline Touch as_touch(const NodeTouch& touch) noexcept {
  const auto& [low, high] = touch.where.bytes();
  if (touch.where.whole()) return {touch.storage, low, high, nullptr, 0, touch.access, false};
  return {touch.storage, low, high, &touch.where.layout(), touch.where.first(), touch.access, false};
}

// All accesses of a graph, and the memory that they keep alive, each block once.
struct GraphAccesses {
  std::vector<NodeTouch> touches;
  std::vector<Ref<Storage>> kept;

  // A copy in which the accesses of the only node of another graph replace those of `node`. Memory without accesses is
  // no longer kept.
  GraphAccesses with_node(std::uint32_t node, const GraphAccesses& fresh) const;
};

// Recorded operations and their order. Immutable. Keeps everything that it uses alive.
class Graph final : public RefCounted {
 public:
  std::vector<GraphNode> nodes;  // in topological order
  GraphAccesses accesses;
  std::vector<Ref<Storage>> memory;  // allocated by its nodes
  Backend* home = nullptr;           // the default device for launches
};

// A graph instantiated for one device or several.
class Executable : public RefCounted {
 public:
  // Enqueues one replay, which keeps the works. The caller has ordered it after the previous replay and serialises
  // these calls. Throws as a launch does, with nothing enqueued.
  virtual Point launch(Stream& stream, const Ref<Works>& works) = 0;
};

// Makes an executable that enqueues node by node into streams of its own, for graphs that no device runs as a whole.
Ref<Executable> make_graph_fallback(const Ref<Graph>& graph);

// A graph ready for launching. Its replays never overlap: each comes after the previous one. Any thread may call any
// member.
class GraphInstance final : public RefCounted {
 public:
  // Instantiates the graph. Throws Error(value) for nodes that the device cannot run.
  GraphInstance(Ref<Graph> graph, Ref<Works> works);

  Ref<Graph> graph() const;
  Ref<Works> works() const;
  // Whether the last replay ran on another stream and has failed. It is not waited for, but what it should have written
  // is lost.
  bool has_failed_elsewhere(Stream& stream);
  // Makes the stream wait for the last noted replay, and updates its lane.
  void follow(Stream& stream);
  // Enqueues a replay after the previous one, on a stream of a device that the graph uses. `context`: see `Works`.
  Point launch(Stream& stream, Ref<RefCounted> context = nullptr) {
    return launch(stream, std::move(context), [](Change&) {});
  }
  // The same, after `change(Change&)` has changed the works of this and later replays. Runs under the lock.
  template <class Changes>
  Point launch(Stream& stream, Ref<RefCounted> context, Changes&& change) {
    const std::lock_guard lock(lock_);
    Change changes(works_);
    change(changes);
    return enqueue(stream, std::move(context));
  }
  // Called once the last replay is recorded in the stream's lane.
  void note(Stream& stream);
  // Later replays run this work for the node.
  void set(std::uint32_t node, const Work::What& what);
  // Later replays run that graph. Returns whether it was instantiated again.
  bool update(const Ref<Graph>& graph, const Ref<Works>& works);

  std::uint64_t replays() const noexcept { return replays_.load(std::memory_order_relaxed); }
  std::uint64_t instantiations() const noexcept { return instantiations_.load(std::memory_order_relaxed); }

 private:
  Ref<Executable> instantiate(const Ref<Graph>& graph, const Ref<Works>& works);
  // Lets the next replay come after the newest that has not failed, since it needs nothing of the others. Requires the
  // lock.
  void forget_failed();
  // Whether the last replay is over, by a failure. Requires the lock, and that there is one.
  bool last_has_failed() const;
  // Whether the last replay is on another stream and may not be over. Requires the lock.
  bool is_pending_elsewhere(const Stream& stream) const;
  // Requires the lock.
  Point enqueue(Stream& stream, Ref<RefCounted> context);
  // Held while a replay is enqueued: another launch would have to wait for the driver in any case.
  mutable SpinLock lock_;
  Ref<Graph> graph_;
  Ref<Works> works_;
  std::atomic<std::uint64_t> replays_{0};
  std::atomic<std::uint64_t> instantiations_{0};
  Ref<Executable> executable_;
  Record last_;
  // Replays before the last one, on other streams, that may not be over: if the last one fails, it may never have
  // waited for them.
  std::vector<Record> earlier_;
};

}  // namespace anabranch
