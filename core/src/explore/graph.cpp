// Graphs whose nodes are operations of their own.
#include <algorithm>
#include <utility>

#include "controller.hpp"

namespace anabranch::explore {
namespace {

std::string description_of(const GraphNode& node) {
  switch (node.kind) {
    case NodeKind::kernel:
      return "node: kernel '" + node.name + "'";
    case NodeKind::copy:
      return "node: copy";
    case NodeKind::fill:
      return "node: fill";
    case NodeKind::alloc:
      return "node: allocation";
    case NodeKind::free:
      return "node: free";
    case NodeKind::external:
      return "node: " + node.name;
    case NodeKind::host:
      return "node: function";
    case NodeKind::branch:
      return "node: run_if";
    case NodeKind::loop:
      return "node: run_while";
    case NodeKind::graph:
      return "node: graph";
  }
  return {};
}

}  // namespace

EventId Controller::node_id(EventId graph, std::size_t node) { return {number(node_of_graph, graph.key(), node), 1}; }

void Controller::expect_nodes(Stream& stream, const Graph& graph, std::span<const NodeTouch> touches) {
  Coming& next = coming();
  if (next.stream != &stream) return;
  next.nodes.clear();
  for (const GraphNode& node : graph.nodes) {
    for (const std::uint32_t before : node.after) next.nodes[before].last = false;
    next.nodes.push_back({.what = description_of(node), .after = node.after});
  }
  const std::lock_guard lock(mutex_);
  Host& host = this_host();
  for (const NodeTouch& touch : touches) {
    add_use(next.nodes[touch.node].uses, as_touch(touch), host);
  }
}

// Begins a graph that its stream has come to, which is no choice: its nodes are. Returns whether there was one.
bool Controller::begin_graph(std::unique_lock<std::mutex>& lock) {
  for (Runnable* const runnable : ready_) {
    Source& source = sources_[runnable];
    if (source.queue.empty() || source.queue.front().nodes.empty()) continue;
    if (runnable->readiness() != Readiness::ready) continue;
    Operation& operation = source.queue.front();
    const EventId id = operation.step->id;
    Begun& graph = graphs_[runnable];
    graph = {
        id, source.past, std::move(operation.nodes), operation.sequence, source.name, operation.site, operation.origin};
    operation.nodes.clear();
    graph.before.learn(operation.created);
    for (const EventId other : operation.waits) learn(graph.before, other);
    advancing_ = true;
    lock.unlock();
    const bool begun = runnable->begin_parts();
    lock.lock();
    advancing_ = false;
    if (!begun) {
      graphs_.erase(runnable);
      return true;
    }
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      if (graph.nodes[i].last) operation.waits.push_back(node_id(id, i));
    }
    return true;
  }
  return false;
}

void Controller::ready_node(Runnable& runnable, Begun& graph, std::uint32_t number) {
  Node& node = graph.nodes[number];
  node.runnable = &runnable;
  Operation operation;
  operation.step = std::make_shared<Step>();
  operation.step->id = node_id(graph.graph, number);
  operation.step->uses = std::move(node.uses);
  operation.created = graph.before;
  for (const std::uint32_t before : node.after) operation.waits.push_back(node_id(graph.graph, before));
  operation.sequence = graph.sequence - graph.nodes.size() + number;
  operation.what = std::move(node.what);
  operation.site = graph.site;
  operation.origin = graph.origin;
  Source& source = sources_[&runnable];
  source = {};
  source.process = operation.step->id.process;
  source.enqueued = 1;
  source.name = graph.name;
  source.queue.push_back(std::move(operation));
  ready_.push_back(&runnable);
}

// The stream has gone on: there may be other nodes at the addresses of these.
void Controller::forget_graph(const Runnable& stream) {
  const auto graph = graphs_.find(&stream);
  if (graph == graphs_.end()) return;
  for (const Node& node : graph->second.nodes) sources_.erase(node.runnable);
  graphs_.erase(graph);
}

void expect_nodes(Stream& stream, const Graph& graph, std::span<const NodeTouch> touches) {
  if (Controller* controller = Controller::current()) controller->expect_nodes(stream, graph, touches);
}

}  // namespace anabranch::explore
