#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "anabranch/graph/graph.hpp"
#include "pool.hpp"
#include "range.hpp"

namespace anabranch::cpu {

class Plan;

// The state that all nodes of a replay share, including those of nested graphs.
class Replay {
 public:
  // Call this first, while no other replay of the plan runs.
  void open(bool urgent, const Ref<RefCounted>& context) noexcept {
    urgent_ = urgent;
    context_ = &context;
    failed_.store(false, std::memory_order_relaxed);
  }
  // Call this when the replay is over. Returns the failure, or null.
  Ref<Failure> close() noexcept { return std::move(failure_); }

  bool urgent() const noexcept { return urgent_; }
  const Ref<RefCounted>& context() const noexcept { return *context_; }
  // Nodes reached later do not run. Only the first failure counts.
  void fail(const Ref<Failure>& failure) noexcept;
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  // Requires that the replay has failed.
  const Ref<Failure>& failure() const noexcept { return failure_; }

  // Called by the worker that ends the last node. That worker does not access the replay afterwards.
  virtual void over() noexcept = 0;
  // The stream of a replay whose nodes are operations of their own, which an exploration runs one by one; else null.
  const explore::Runnable* explored() const noexcept { return explored_; }
  void explore(const explore::Runnable* stream) noexcept { explored_ = stream; }
  // Called instead of `over` in such a replay.
  virtual void nodes_over() noexcept = 0;

 protected:
  ~Replay() = default;

 private:
  const explore::Runnable* explored_ = nullptr;
  bool urgent_ = false;
  const Ref<RefCounted>* context_ = nullptr;  // of the works
  std::mutex mutex_;
  Ref<Failure> failure_;  // set before `failed_`
  std::atomic<bool> failed_{false};
};

// One worker's turn at a replay.
struct Turn {
  Pool& pool;
  bool over = false;  // the replay is over, and this worker must report it
};

// A node of a running graph, and the job that takes it to a worker. When a node is over, its state is reset for the
// next replay.
//
// The functions that end a node release its successors. They return a node for this worker to continue with, or null,
// and have queued all others in the pools. Once everything is queued elsewhere, the plan may be destroyed at any time.
class PlanNode final : public Job, private RangeOwner {
 public:
  PlanNode();
  ~PlanNode();

  // Runs from `node`, which may be null, for as long as there is a next node.
  static void work(PlanNode* node, Turn& turn) noexcept;

 private:
  friend class Plan;
  void run() noexcept override;
  void step() noexcept override;
  explore::Part part() const noexcept override;
  void range_over(Ref<Failure> failure) noexcept override;
  static void resume(void* node) noexcept;

  // The node's work in the current replay.
  template <class T>
  const T& what() const noexcept;

  // Counts one predecessor, if any, as over. Returns whether it was the last.
  bool reach() noexcept;
  PlanNode* keep(Turn& turn) noexcept;
  PlanNode* advance(Turn& turn) noexcept;
  PlanNode* begin(const Range& range, Turn& turn) noexcept;
  PlanNode* begin(HostWork& host, Turn& turn) noexcept;
  PlanNode* begin(const NestedWork& nested, Turn& turn) noexcept;
  PlanNode* host_over(Turn& turn) noexcept;
  PlanNode* body_over(Turn& turn) noexcept;
  PlanNode* over(Turn& turn) noexcept;
  void skip(const Work& work, const Ref<RefCounted>& context, const Ref<Failure>& failure) const noexcept;

  NodeKind kind_ = NodeKind::kernel;
  Plan* plan_ = nullptr;
  Pool* pool_ = nullptr;
  PlanNode* chain_ = nullptr;  // the only successor, if this is its only predecessor
  std::span<PlanNode* const> after_;
  std::uint32_t number_ = 0;
  std::uint32_t before_ = 0;
  std::atomic<std::uint32_t> missing_{0};  // predecessors that are not over; used only if there are several
  Ref<HostOperation> pending_;             // of a host function that was called
  std::unique_ptr<Plan> body_;
  std::unique_ptr<Plan> otherwise_;
};

// A graph prepared for running: its nodes, their successors, and plans of nested graphs. Created once for many replays.
// A replay allocates nothing, and whoever brings a counter to its end resets it.
class Plan {
 public:
  // Requires that all nodes are on CPU devices. `parent`: the node that contains the graph, or null.
  Plan(Replay& replay, const Graph& graph, const Works& works, PlanNode* parent = nullptr);

  // Begins a replay and runs it for as long as this worker of the pool can continue. Returns whether the replay is
  // over; then `Replay::over` is not called.
  bool run(const Works& works, Pool& pool) noexcept;
  // The same for a replay that is explored: hands its first nodes to the controller.
  bool begin_nodes(const Works& works, Pool& pool) noexcept;
  // Notifies the host functions of a replay that does not run. Another replay may be running.
  void skip(const Works& works, const Ref<RefCounted>& context, const Ref<Failure>& failure) const noexcept;

 private:
  friend class PlanNode;
  PlanNode* begin(const Works& works, Turn& turn) noexcept;
  PlanNode* release(std::span<PlanNode* const> nodes, Turn& turn) noexcept;
  PlanNode* leaf_over(Turn& turn) noexcept;
  PlanNode* over(Turn& turn) noexcept;

  Replay& replay_;
  PlanNode* const parent_;
  std::vector<PlanNode> nodes_;
  std::vector<PlanNode*> links_;  // the roots, then the successors of each node
  std::span<PlanNode* const> roots_;
  std::uint32_t leaves_ = 0;
  std::atomic<std::uint32_t> open_{0};  // leaves that are not over; used only if there are several
  const Works* works_ = nullptr;        // of the current replay
};

}  // namespace anabranch::cpu
