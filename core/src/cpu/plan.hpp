#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "anabranch/graph.hpp"
#include "pool.hpp"
#include "range.hpp"

namespace anabranch::cpu {

class Plan;

// What all nodes of a replay share, those of graphs within the graph included.
class Replay {
 public:
  // Before anything else. No other replay of the same plan is under way.
  void open(bool urgent, const Ref<RefCounted>& context) noexcept {
    urgent_ = urgent;
    context_ = &context;
    failed_.store(false, std::memory_order_relaxed);
  }
  // When it is over: the failure or null.
  Ref<Failure> close() noexcept { return std::move(failure_); }

  bool urgent() const noexcept { return urgent_; }
  const Ref<RefCounted>& context() const noexcept { return *context_; }
  // Nodes that are reached later do not run. The first failure counts.
  void fail(const Ref<Failure>& failure) noexcept;
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  // Once it has failed.
  const Ref<Failure>& failure() const noexcept { return failure_; }

  // The last node is over. Called by the worker that found it so, which touches nothing of the replay any more.
  virtual void over() noexcept = 0;

 protected:
  ~Replay() = default;

 private:
  bool urgent_ = false;
  const Ref<RefCounted>* context_ = nullptr;  // of the works
  std::mutex mutex_;
  Ref<Failure> failure_;  // set before `failed_`
  std::atomic<bool> failed_{false};
};

// A worker's stretch of work on a replay.
struct Turn {
  Pool& pool;
  bool over = false;  // the replay is, and this worker is the one to tell
};

// A node as it runs, and the job that takes it to a worker. A node that is over is again as it was before.
//
// What makes a node over hands on to those after it: a function that returns a node leaves it for this worker to go on
// with, and has left all others to the pools. As soon as everything is left to others, the plan may be gone.
class PlanNode final : public Job, private RangeOwner {
 public:
  PlanNode();
  ~PlanNode();

  // Goes on from a node, or from none, for as long as there is one to go on with.
  static void work(PlanNode* node, Turn& turn) noexcept;

 private:
  friend class Plan;
  void run() noexcept override;
  void range_over(Ref<Failure> failure) noexcept override;
  static void resume(void* node) noexcept;

  // The node's part of a replay.
  template <class T>
  const T& what() const noexcept;

  // One of those before is over, or there are none. Whether that was the last.
  bool reach() noexcept;
  PlanNode* keep(Turn& turn) noexcept;
  PlanNode* step(Turn& turn) noexcept;
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
  PlanNode* chain_ = nullptr;  // the only one after this, if it comes after nothing else
  std::span<PlanNode* const> after_;
  std::uint32_t number_ = 0;
  std::uint32_t before_ = 0;
  std::atomic<std::uint32_t> missing_{0};  // how many of those before are not over; kept only if there are several
  Ref<Pending> pending_;                   // of a host function that was called
  std::unique_ptr<Plan> body_;
  std::unique_ptr<Plan> otherwise_;
};

// A graph as it runs: its nodes, what comes after each, and plans of the graphs within. Made once for many replays;
// nothing is allocated for one, and what is counted down in one is counted up again by whoever came to the end.
class Plan {
 public:
  // All nodes are of CPU devices. `parent`: the node that the graph is within, or null.
  Plan(Replay& replay, const Graph& graph, const Works& works, PlanNode* parent = nullptr);

  // Begins a replay, and goes on for as long as this worker of the pool can. Whether the replay is over, of which
  // nobody is told then.
  bool run(const Works& works, Pool& pool) noexcept;
  // Tells the host functions of a replay that does not run, while another one may.
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
  std::vector<PlanNode*> links_;  // what begins, then what comes after each node
  std::span<PlanNode* const> roots_;
  std::uint32_t leaves_ = 0;
  std::atomic<std::uint32_t> open_{0};  // leaves that are not over; kept only if there are several
  const Works* works_ = nullptr;        // of this replay
};

}  // namespace anabranch::cpu
