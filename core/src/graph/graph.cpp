#include "anabranch/graph/graph.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "anabranch/backend.hpp"
#include "anabranch/hazard/hazard.hpp"

namespace anabranch {
namespace {

// How many replays to remember before those that are over are looked for.
constexpr std::size_t few_replays = 8;

enum class State { pending, completed, failed };

State state_of(const Record& replay) noexcept {
  try {
    const bool completed = replay.stream->backend().query(*replay.stream, replay.point);
    return completed ? State::completed : State::pending;
  } catch (const Error&) {
    return State::failed;
  }
}

}  // namespace

std::uint64_t next_version() noexcept {
  static std::atomic<std::uint64_t> newest{0};
  return newest.fetch_add(1, std::memory_order_relaxed) + 1;
}

Work::What& Change::what(std::uint32_t node) {
  if (!begun_) {
    if (works_->unique()) {
      works_->version = next_version();
    } else {
      auto copy = make_ref<Works>();
      copy->of = works_->of;
      works_ = std::move(copy);
    }
    begun_ = true;
  }
  Ref<Work>& work = works_->of[node];
  if (work->unique()) {
    work->version = works_->version;
  } else {
    work = make_ref<Work>(Work::What(work->what));
  }
  return work->what;
}

namespace {

// Whether the nodes agree in kind, device and order, so that only their works can differ.
bool alike(const Graph& one, const Works& works, const Graph& other, const Works& others) {
  if (one.nodes.size() != other.nodes.size()) return false;
  for (std::size_t i = 0; i < one.nodes.size(); ++i) {
    const GraphNode& node = one.nodes[i];
    const GraphNode& same = other.nodes[i];
    if (node.kind != same.kind || node.device != same.device || node.after != same.after) return false;
    const auto* nested = std::get_if<NestedWork>(&works.of[i]->what);
    const auto* another = std::get_if<NestedWork>(&others.of[i]->what);
    if (nested && (!another || nested->body != another->body || nested->otherwise != another->otherwise)) return false;
  }
  return true;
}

}  // namespace

GraphAccesses GraphAccesses::with_node(std::uint32_t node, const GraphAccesses& fresh) const {
  GraphAccesses result;
  std::unordered_set<const Storage*> missing;
  const auto add = [&](const NodeTouch& touch) {
    result.touches.push_back(touch);
    missing.insert(touch.storage);
  };
  for (const NodeTouch& touch : touches) {
    if (touch.node != node) add(touch);
  }
  for (const NodeTouch& touch : fresh.touches) add({node, touch.storage, touch.where, touch.access});
  for (const auto* some : {&kept, &fresh.kept}) {
    for (const Ref<Storage>& storage : *some) {
      if (missing.erase(storage.get()) != 0) result.kept.push_back(storage);
    }
  }
  return result;
}

GraphInstance::GraphInstance(Ref<Graph> graph, Ref<Works> works)
    : graph_(std::move(graph)), works_(std::move(works)), executable_(instantiate(graph_, works_)) {}

Ref<Executable> GraphInstance::instantiate(const Ref<Graph>& graph, const Ref<Works>& works) {
  instantiations_.fetch_add(1, std::memory_order_relaxed);
  if (Ref<Executable> made = graph->home->instantiate(graph, works)) return made;
  return make_graph_fallback(graph);
}

Ref<Graph> GraphInstance::graph() const {
  const std::lock_guard lock(lock_);
  return graph_;
}

Ref<Works> GraphInstance::works() const {
  const std::lock_guard lock(lock_);
  return works_;
}

bool GraphInstance::is_pending_elsewhere(const Stream& stream) const {
  return last_.stream && last_.stream.get() != &stream &&
         !last_.stream->backend().known_completed(*last_.stream, last_.point);
}

// An exploration makes every wait.
bool GraphInstance::last_has_failed() const {
  return last_.stream->may_have_failed() && !exploring() && state_of(last_) == State::failed;
}

bool GraphInstance::has_failed_elsewhere(Stream& stream) {
  const std::lock_guard lock(lock_);
  return is_pending_elsewhere(stream) && last_has_failed();
}

void GraphInstance::forget_failed() {
  bool failed = false;
  for (; last_.stream && last_has_failed(); failed = true) {
    last_ = earlier_.empty() ? Record{} : std::move(earlier_.back());
    if (!earlier_.empty()) earlier_.pop_back();
  }
  if (failed) executable_ = instantiate(graph_, works_);
}

void GraphInstance::follow(Stream& stream) {
  Record last;
  while (true) {
    {
      const std::lock_guard lock(lock_);
      if (is_pending_elsewhere(stream)) forget_failed();
      if (!last_.stream || last_.stream.get() == &stream || last_.past.count == 0) return;
      if (last_.stream == last.stream && last_.point == last.point) return;
      last = last_;
    }
    // Without the lock, because a traced wait runs Python code. Another thread may launch the graph meanwhile.
    Ordering::wait(stream, last);
  }
}

Point GraphInstance::enqueue(Stream& stream, Ref<RefCounted> context) {
  if (is_pending_elsewhere(stream)) forget_failed();
  const bool pending = is_pending_elsewhere(stream);
  if (pending) {
    if (tracing()) [[unlikely]] {
      trace_inner_wait(stream, *last_.stream, last_.point);
    } else {
      stream.backend().wait(stream, *last_.stream, last_.point, nullptr);
    }
  }
  Ref<Works> works;
  if (context) {
    works = make_ref<Works>();
    works->of = works_->of;
    works->version = works_->version;
    works->context = std::move(context);
  }
  const Point point = executable_->launch(stream, works ? works : works_);
  if (pending) {
    if (earlier_.size() >= few_replays)
      std::erase_if(earlier_, [](const Record& each) { return state_of(each) != State::pending; });
    earlier_.push_back(std::move(last_));
  } else if (last_.stream.get() != &stream) {
    earlier_.clear();
  }
  if (last_.stream.get() != &stream) last_.stream = Ref<Stream>::share(&stream);
  last_.point = point;
  last_.past.count = 0;
  replays_.store(replays_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return point;
}

void GraphInstance::note(Stream& stream) {
  const std::lock_guard lock(lock_);
  if (last_.stream.get() != &stream) return;
  last_.past = stream.lane().settled();
  last_.point = std::max(last_.point, stream.issued());  // as in Ordering::note
}

void GraphInstance::set(std::uint32_t node, const Work::What& what) {
  const std::lock_guard lock(lock_);
  Change(works_).what(node) = what;
}

bool GraphInstance::update(const Ref<Graph>& graph, const Ref<Works>& works) {
  auto copy = make_ref<Works>();
  copy->of = works->of;
  const std::lock_guard lock(lock_);
  const bool same = alike(*graph_, *works_, *graph, *works);
  if (!same) executable_ = instantiate(graph, copy);
  graph_ = graph;
  works_ = std::move(copy);
  return !same;
}

}  // namespace anabranch
