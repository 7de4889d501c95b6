#include "plan.hpp"

#include <algorithm>

#include "backend.hpp"
#include "explore/controller.hpp"

namespace anabranch::cpu {

void Replay::fail(const Ref<Failure>& failure) noexcept {
  const std::lock_guard lock(mutex_);
  if (failed()) return;
  failure_ = failure;
  failed_.store(true, std::memory_order_release);
}

// -- nodes --

PlanNode::PlanNode() : Job(false) {}
PlanNode::~PlanNode() = default;

template <class T>
const T& PlanNode::what() const noexcept {
  return std::get<T>(plan_->works_->of[number_]->what);
}

void PlanNode::work(PlanNode* node, Turn& turn) noexcept {
  if (!node) return;
  const bool urgent = node->plan_->replay_.urgent();
  for (int left = operations_per_turn; node; left = std::max(left - 1, 0)) {
    if (turn.pool.stopping()) return;
    if (turn.pool.contended(urgent) || (left == 0 && turn.pool.waiting())) {
      node->set_urgent(urgent);
      return turn.pool.ready(*node);
    }
    node = node->advance(turn);
  }
}

void PlanNode::run() noexcept {
  Replay& replay = plan_->replay_;
  Turn turn{*pool_};
  work(this, turn);
  if (turn.over) replay.over();
}

// One node at a time: the controller chooses the next. The nodes of a graph within are parts of its node.
void PlanNode::step() noexcept {
  Replay& replay = plan_->replay_;
  if (!replay.explored()) return run();
  Turn turn{*pool_};
  PlanNode* node = advance(turn);
  while (node && node->plan_->parent_) node = node->advance(turn);
  if (node) node->pool_->ready(*node);
  if (turn.over) replay.nodes_over();
}

explore::Part PlanNode::part() const noexcept {
  if (plan_->parent_) return {};
  return {plan_->replay_.explored(), number_};
}

void PlanNode::range_over(Ref<Failure> failure) noexcept {
  Replay& replay = plan_->replay_;
  if (failure) [[unlikely]]
    replay.fail(failure);
  Turn turn{*pool_};
  work(over(turn), turn);
  if (turn.over) replay.over();
}

void PlanNode::resume(void* context) noexcept {
  auto* node = static_cast<PlanNode*>(context);
  node->set_urgent(node->plan_->replay_.urgent());
  node->pool_->ready(*node);
}

bool PlanNode::reach() noexcept {
  if (before_ <= 1) return true;
  if (missing_.fetch_sub(1, std::memory_order_acq_rel) != 1) return false;
  missing_.store(before_, std::memory_order_relaxed);
  return true;
}

// Keeps the node on this worker if the worker belongs to the node's device.
PlanNode* PlanNode::keep(Turn& turn) noexcept {
  if (pool_ == &turn.pool) return this;
  resume(this);
  return nullptr;
}

PlanNode* PlanNode::advance(Turn& turn) noexcept {
  if (pending_) return host_over(turn);
  const Replay& replay = plan_->replay_;
  if (replay.failed()) [[unlikely]] {
    skip(*plan_->works_->of[number_], replay.context(), replay.failure());
    return over(turn);
  }
  switch (kind_) {
    case NodeKind::kernel: {
      const auto& kernel = what<KernelWork>();
      return begin(kernel_range(*kernel.kernel, std::get<LaunchShape>(kernel.grid), kernel.arguments), turn);
    }
    case NodeKind::copy:
      return begin(copy_range(*what<Boxed<CopyWork>>()), turn);
    case NodeKind::fill:
      return begin(fill_range(*what<Boxed<FillWork>>()), turn);
    case NodeKind::alloc:
    case NodeKind::free:
    case NodeKind::external:  // never here: no library uses this device
      return over(turn);
    case NodeKind::host:
      return begin(*what<Ref<HostWork>>(), turn);
    case NodeKind::branch:
    case NodeKind::loop:
    case NodeKind::graph:
      return begin(what<NestedWork>(), turn);
  }
  return nullptr;
}

PlanNode* PlanNode::begin(const Range& range, Turn& turn) noexcept {
  Ref<Failure> failure;
  if (run_range(range, turn.pool, plan_->replay_.urgent(), *this, failure) == Step::parked) return nullptr;
  if (failure) [[unlikely]]
    plan_->replay_.fail(failure);
  return over(turn);
}

PlanNode* PlanNode::begin(HostWork& host, Turn& turn) noexcept {
  // Kept here: after `enter` the operation may complete, and the replay end, before `start` is called.
  const Ref<HostOperation> pending = host.make(plan_->replay_.context());
  pending_ = pending;
  if (!pending->enter(&PlanNode::resume, this)) return host_over(turn);
  if (explore::Controller* const controller = pool_->controller()) controller->calling(*this);
  pending->start();
  return nullptr;
}

PlanNode* PlanNode::begin(const NestedWork& nested, Turn& turn) noexcept {
  if (!nested.flag || *nested.flag != 0) return body_->begin(*nested.works, turn);
  if (otherwise_) return otherwise_->begin(*nested.otherwise_works, turn);
  return over(turn);
}

PlanNode* PlanNode::host_over(Turn& turn) noexcept {
  const Ref<HostOperation> pending = std::move(pending_);
  if (pending->failure()) plan_->replay_.fail(pending->failure());
  return over(turn);
}

PlanNode* PlanNode::body_over(Turn& turn) noexcept { return kind_ == NodeKind::loop ? keep(turn) : over(turn); }

PlanNode* PlanNode::over(Turn& turn) noexcept {
  if (chain_) return chain_->keep(turn);
  return after_.empty() ? plan_->leaf_over(turn) : plan_->release(after_, turn);
}

// Skips no host function in a branch or loop, because nobody knows whether it would have run.
void PlanNode::skip(const Work& work, const Ref<RefCounted>& context, const Ref<Failure>& failure) const noexcept {
  if (kind_ == NodeKind::host) std::get<Ref<HostWork>>(work.what)->make(context)->skip(failure);
  if (kind_ == NodeKind::graph) body_->skip(*std::get<NestedWork>(work.what).works, context, failure);
}

// -- graphs --

Plan::Plan(Replay& replay, const Graph& graph, const Works& works, PlanNode* parent)
    : replay_(replay), parent_(parent), nodes_(graph.nodes.size()) {
  std::vector<std::vector<PlanNode*>> after(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const GraphNode& from = graph.nodes[i];
    PlanNode& node = nodes_[i];
    node.kind_ = from.kind;
    node.plan_ = this;
    node.pool_ = &static_cast<CpuBackend*>(from.device)->pool();
    node.number_ = static_cast<std::uint32_t>(i);
    node.before_ = static_cast<std::uint32_t>(from.after.size());
    node.missing_ = node.before_;
    for (const std::uint32_t before : from.after) after[before].push_back(&node);
    if (const auto* nested = works.of[i] ? std::get_if<NestedWork>(&works.of[i]->what) : nullptr) {
      node.body_ = std::make_unique<Plan>(replay, *nested->body, *nested->works, &node);
      if (nested->otherwise)
        node.otherwise_ = std::make_unique<Plan>(replay, *nested->otherwise, *nested->otherwise_works, &node);
    }
    if (node.before_ == 0) links_.push_back(&node);
  }
  const std::size_t roots = links_.size();
  for (const auto& each : after) links_.insert(links_.end(), each.begin(), each.end());
  roots_ = std::span(links_).first(roots);
  std::size_t begin = roots;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    PlanNode& node = nodes_[i];
    node.after_ = std::span(links_).subspan(begin, after[i].size());
    begin += after[i].size();
    if (after[i].empty()) ++leaves_;
    if (after[i].size() == 1 && after[i][0]->before_ == 1) node.chain_ = after[i][0];
  }
  open_ = leaves_;
}

bool Plan::run(const Works& works, Pool& pool) noexcept {
  Turn turn{pool};
  PlanNode::work(begin(works, turn), turn);
  return turn.over;
}

bool Plan::begin_nodes(const Works& works, Pool& pool) noexcept {
  Turn turn{pool};
  if (PlanNode* const node = begin(works, turn)) node->pool_->ready(*node);
  return turn.over;
}

void Plan::skip(const Works& works, const Ref<RefCounted>& context, const Ref<Failure>& failure) const noexcept {
  for (const PlanNode& node : nodes_) node.skip(*works.of[node.number_], context, failure);
}

PlanNode* Plan::begin(const Works& works, Turn& turn) noexcept {
  works_ = &works;
  return nodes_.empty() ? over(turn) : release(roots_, turn);
}

// Keeps one node for this worker if possible and queues the others in their pools. The plan exists until the last of
// them has run.
PlanNode* Plan::release(std::span<PlanNode* const> nodes, Turn& turn) noexcept {
  const bool urgent = replay_.urgent();
  PlanNode* kept = nullptr;
  Pool* pool = nullptr;
  Jobs others;
  for (PlanNode* node : nodes) {
    if (!node->reach()) continue;
    if (!kept && node->pool_ == &turn.pool) {
      kept = node;
      continue;
    }
    if (others.count() > 0 && node->pool_ != pool) {
      pool->ready(others);
      others = {};
    }
    pool = node->pool_;
    node->set_urgent(urgent);
    others.push(*node);
  }
  if (others.count() > 0) pool->ready(others);
  return kept;
}

PlanNode* Plan::leaf_over(Turn& turn) noexcept {
  if (leaves_ > 1) {
    if (open_.fetch_sub(1, std::memory_order_acq_rel) != 1) return nullptr;
    open_.store(leaves_, std::memory_order_relaxed);
  }
  return over(turn);
}

PlanNode* Plan::over(Turn& turn) noexcept {
  if (parent_) return parent_->body_over(turn);
  turn.over = true;
  return nullptr;
}

}  // namespace anabranch::cpu
