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

#include "anabranch/event.hpp"
#include "anabranch/history.hpp"
#include "anabranch/host.hpp"
#include "anabranch/kernel.hpp"
#include "anabranch/layout.hpp"
#include "anabranch/lock.hpp"
#include "anabranch/memory.hpp"
#include "anabranch/ref.hpp"
#include "anabranch/stream.hpp"

namespace anabranch {

class Backend;
class Graph;
struct Works;

enum class NodeKind : std::uint8_t {
  kernel,
  copy,
  fill,
  alloc,   // memory of the graph's own comes into use; nothing runs
  free,    // and goes out of it
  host,    // a host function
  branch,  // one of two graphs, by a flag
  loop,    // a graph, for as long as a flag is not 0
  graph,   // another graph
};

// The slots of a launch, as of `Backend::launch`. Without memory of their own unless there are many.
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

// What the nodes of these kinds run.
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
// A host function, which is called once in each replay.
class HostWork : public RefCounted {
 public:
  // The operation of one replay, whose context its works have. On any thread, a worker's too: runs no Python, and does
  // not throw.
  virtual Ref<Pending> make(const Ref<RefCounted>& context) noexcept = 0;
};
// Graphs within this one, with their works. Of a branch the second may be null, which does nothing.
struct NestedWork {
  const std::int32_t* flag = nullptr;  // on the node's device; null for a graph
  Ref<Graph> body;
  Ref<Works> works;
  Ref<Graph> otherwise = nullptr;
  Ref<Works> otherwise_works = nullptr;
};

// A value apart from who has it: for what is large and rare, so that the others need no room for it.
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

// What a version is of was never different from what it is now.
std::uint64_t next_version() noexcept;

// Nobody changes it while another holds it, and whoever does gives it a new version.
struct Work final : RefCounted {
  using What = std::variant<std::monostate, KernelWork, Boxed<CopyWork>, Boxed<FillWork>, Ref<HostWork>, NestedWork>;
  explicit Work(What&& what) : what(std::move(what)) {}
  // The same of one kind; null if it is another's.
  const CopyWork* copy() const noexcept { return unboxed(std::get_if<Boxed<CopyWork>>(&what)); }
  const FillWork* fill() const noexcept { return unboxed(std::get_if<Boxed<FillWork>>(&what)); }

  What what;
  std::uint64_t version = next_version();  // of no other work of its node

 private:
  template <class T>
  static const T* unboxed(const Boxed<T>* box) noexcept {
    return box ? &**box : nullptr;
  }
};

// What all nodes of a graph run, by their numbers. A replay keeps those that it was launched with; as for the work of
// one, nobody changes them while another holds them, and whoever does gives them a new version.
struct Works final : RefCounted {
  std::vector<Ref<Work>> of;
  std::uint64_t version = next_version();  // of no others
  Ref<RefCounted> context;                 // what the host functions of a replay are told
};

// Changes works for the replays from now on: in place what nobody else holds, which costs no memory, else in copies.
class Change {
 public:
  explicit Change(Ref<Works>& works) noexcept : works_(works) {}
  // As they are by now.
  const Works& now() const noexcept { return *works_; }
  // What the node runs, to be changed. Throws for want of memory, with nothing changed.
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
  std::vector<std::uint32_t> after;  // nodes that it comes right after, all of lower numbers
  std::size_t bytes = 0;             // of memory: how much
  Ref<RefCounted> origin = nullptr;  // what the layer above made it from
};

// An access to memory that a node makes.
struct NodeTouch {
  std::uint32_t node = 0;
  Storage* storage = nullptr;
  ByteRange bytes;
  Access access = Access::read;
};
// All of a graph's, and the memory, each block once.
struct GraphAccesses {
  std::vector<NodeTouch> touches;
  std::vector<Ref<Storage>> kept;

  // The same, but for those of `node`, which become the ones of the only node of another graph. Memory that is not
  // accessed any more is not kept.
  GraphAccesses with_node(std::uint32_t node, const GraphAccesses& fresh) const;
};

// Operations and their order, recorded once to run many times. Immutable. What it uses lives as long as it does.
class Graph final : public RefCounted {
 public:
  std::vector<GraphNode> nodes;  // each after those that it comes after
  GraphAccesses accesses;
  std::vector<Ref<Storage>> memory;  // that its nodes allocate
  Backend* home = nullptr;           // the device that it is launched on, if nothing else is said
};

// A graph made ready to run on a device, or on several.
class Executable : public RefCounted {
 public:
  // Enqueues one replay, which keeps the works. The caller has seen to it that the one before comes before, and calls
  // this for one at a time. Throws what a launch does, with nothing enqueued.
  virtual Point launch(Stream& stream, const Ref<Works>& works) = 0;
};

// One that enqueues node after node into streams of its own: for graphs that no device runs as a whole.
Ref<Executable> make_graph_fallback(const Ref<Graph>& graph);

// A graph to be launched. Two replays of one never overlap: each comes after the one before. Any thread.
class GraphInstance final : public RefCounted {
 public:
  // Makes it ready. Throws Error(value) for what the device cannot run.
  GraphInstance(Ref<Graph> graph, Ref<Works> works);

  Ref<Graph> graph() const;
  Ref<Works> works() const;
  // Lets the stream wait for the last replay that was noted, and its lane know of that.
  void follow(Stream& stream);
  // Enqueues a replay, on a stream of a device that the graph uses, after the one before. `context`: as of works.
  Point launch(Stream& stream, Ref<RefCounted> context = nullptr) {
    return launch(stream, std::move(context), [](Change&) {});
  }
  // Before it, `change(Change&)` has the works of this replay and the later ones.
  template <class Changes>
  Point launch(Stream& stream, Ref<RefCounted> context, Changes&& change) {
    const std::lock_guard lock(lock_);
    Change changes(works_);
    change(changes);
    return enqueue(stream, std::move(context));
  }
  // The last replay has been noted in the stream's lane.
  void note(Stream& stream);
  // From the next replay on the node runs this.
  void set(std::uint32_t node, const Work::What& what);
  // From the next replay on it is that graph. Whether it had to be made ready anew.
  bool update(const Ref<Graph>& graph, const Ref<Works>& works);

  std::uint64_t replays() const noexcept { return replays_.load(std::memory_order_relaxed); }
  std::uint64_t instantiations() const noexcept { return instantiations_.load(std::memory_order_relaxed); }

 private:
  Ref<Executable> instantiate(const Ref<Graph>& graph, const Ref<Works>& works);
  // With the lock.
  Point enqueue(Stream& stream, Ref<RefCounted> context);
  // Held while a replay is handed over: who wants to launch the next has to wait for the driver in any case.
  mutable SpinLock lock_;
  Ref<Graph> graph_;
  Ref<Works> works_;
  std::atomic<std::uint64_t> replays_{0};
  std::atomic<std::uint64_t> instantiations_{0};
  Ref<Executable> executable_;
  Record last_;
};

}  // namespace anabranch
