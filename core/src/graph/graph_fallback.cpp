// Graphs that no device runs as a whole: enqueues node by node into streams that wait for each other.
#include <algorithm>
#include <utility>
#include <vector>

#include "anabranch/backend.hpp"
#include "anabranch/graph/graph.hpp"

namespace anabranch {
namespace {

class GraphFallback final : public Executable {
 public:
  explicit GraphFallback(Ref<Graph> graph) : graph_(std::move(graph)) {
    for (const GraphNode& node : graph_->nodes) place(node);
  }

  Point launch(Stream& stream, const Ref<Works>& works) override {
    const Point begin = stream.backend().record(stream);
    points_.assign(graph_->nodes.size(), 0);
    for (std::size_t i = 0; i < graph_->nodes.size(); ++i) {
      const GraphNode& node = graph_->nodes[i];
      Stream& own = *streams_[where_[i]];
      if (node.after.empty()) own.backend().wait(own, stream, begin);
      for (const std::uint32_t before : node.after) {
        if (where_[before] != where_[i]) own.backend().wait(own, *streams_[where_[before]], points_[before]);
      }
      points_[i] = enqueue(own, *works->of[i], works->context);
    }
    for (const std::uint32_t leaf : leaves_) stream.backend().wait(stream, *streams_[where_[leaf]], points_[leaf]);
    return stream.backend().record(stream);
  }

 private:
  // Places the node in the stream of a predecessor if that is the stream's last node so far.
  void place(const GraphNode& node) {
    const auto number = static_cast<std::uint32_t>(where_.size());
    for (const std::uint32_t before : node.after) {
      std::erase(leaves_, before);
    }
    leaves_.push_back(number);
    for (const std::uint32_t before : node.after) {
      const std::size_t stream = where_[before];
      if (last_[stream] == before && &streams_[stream]->backend() == node.device) {
        last_[stream] = number;
        where_.push_back(stream);
        return;
      }
    }
    streams_.push_back(node.device->create_stream({.name = "graph"}));
    last_.push_back(number);
    where_.push_back(streams_.size() - 1);
  }

  static Point enqueue(Stream& stream, const Work& work, const Ref<RefCounted>& context) {
    Backend& device = stream.backend();
    struct Enqueue {
      Backend& device;
      Stream& stream;
      const Ref<RefCounted>& context;
      Point operator()(std::monostate) const { return device.record(stream); }
      Point operator()(const KernelWork& kernel) const {
        if (const auto* shape = std::get_if<LaunchShape>(&kernel.grid))
          return device.launch(stream, *kernel.kernel, *shape, kernel.arguments);
        return device.launch_grid(stream, *kernel.kernel, std::get<LaunchGrid>(kernel.grid), kernel.arguments);
      }
      Point operator()(const Boxed<CopyWork>& copy) const {
        return device.copy(stream, copy->dst, copy->src, copy->count);
      }
      Point operator()(const Boxed<FillWork>& fill) const {
        return device.fill(stream, fill->dst, fill->value, fill->count);
      }
      Point operator()(const Ref<ExternalWork>& external) const { return device.external(stream, external); }
      Point operator()(const Ref<HostWork>& host) const { return device.suspend(stream, host->make(context)); }
      Point operator()(const NestedWork& nested) const {
        if (nested.flag) throw Error(ErrorKind::capture, "a graph that no device runs as a whole has no conditions");
        auto works = make_ref<Works>();
        works->of = nested.works->of;
        works->context = context;
        return GraphFallback(nested.body).launch(stream, works);
      }
    };
    return std::visit(Enqueue{device, stream, context}, work.what);
  }

  const Ref<Graph> graph_;
  std::vector<Ref<Stream>> streams_;
  std::vector<std::uint32_t> last_;  // of each stream: its last node so far
  std::vector<std::size_t> where_;   // of each node: its stream
  std::vector<std::uint32_t> leaves_;
  std::vector<Point> points_;
};

void refuse_conditions(const Graph& graph) {
  for (const GraphNode& node : graph.nodes) {
    if (node.kind != NodeKind::branch && node.kind != NodeKind::loop) continue;
    throw Error(ErrorKind::capture,
                "run_if and run_while cannot be captured here: the graph has host functions or several kinds of "
                "devices, or the driver is older than CUDA 12.4");
  }
}

}  // namespace

Ref<Executable> make_graph_fallback(const Ref<Graph>& graph) {
  refuse_conditions(*graph);
  return make_ref<GraphFallback>(graph);
}

}  // namespace anabranch
