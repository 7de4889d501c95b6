#include "built_graph.hpp"

#include <span>

#include "anabranch/runtime.hpp"
#include "backend.hpp"
#include "graph_builder.hpp"

namespace anabranch::cuda {
namespace {

// Sets new parameters in the nodes of a work, as long as the new work needs the same nodes.
class Renewal final : public Primitives {
 public:
  Renewal(CudaBackend& device, CUgraphExec executable, std::span<const BuiltNode> nodes)
      : device_(device), executable_(executable), nodes_(nodes) {}

  bool complete() const noexcept { return same_ && next_ == nodes_.size(); }

  void copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) override {
    const CUDA_MEMCPY3D parameters = copy_parameters(to, from, bytes);
    if (const BuiltNode* node = next(BuiltNode::Kind::copy, {})) {
      note(driver->cuGraphExecMemcpyNodeSetParams(executable_, node->handle, &parameters, device_.context()));
    }
  }
  void set(CUdeviceptr to, unsigned value, unsigned itemsize, std::size_t count) override {
    const CUDA_MEMSET_NODE_PARAMS parameters = set_parameters(to, value, itemsize, count);
    if (const BuiltNode* node = next(BuiltNode::Kind::set, {})) {
      note(driver->cuGraphExecMemsetNodeSetParams(executable_, node->handle, &parameters, device_.context()));
    }
  }
  void launch(const CUDA_KERNEL_NODE_PARAMS& kernel, const LaunchAttributes& attributes) override {
    if (const BuiltNode* node = next(BuiltNode::Kind::kernel, attributes)) {
      note(driver->cuGraphExecKernelNodeSetParams(executable_, node->handle, &kernel));
    }
  }

 private:
  const BuiltNode* next(BuiltNode::Kind kind, const LaunchAttributes& attributes) noexcept {
    same_ = same_ && next_ < nodes_.size() && nodes_[next_].kind == kind && nodes_[next_].attributes == attributes;
    return same_ ? &nodes_[next_++] : nullptr;
  }
  // A change that the driver refuses may be possible in a graph built anew; otherwise building it reports the error.
  void note(CUresult status) {
    if (is_sticky(status)) device_.check(status, "changing a graph");
    same_ = same_ && status == CUDA_SUCCESS;
  }

  CudaBackend& device_;
  CUgraphExec executable_;
  std::span<const BuiltNode> nodes_;
  std::size_t next_ = 0;
  bool same_ = true;
};

}  // namespace

BuiltGraph::BuiltGraph(CudaBackend& device, const Graph& graph, const Works& works) : device_(device) {
  const ContextScope scope(device.context());
  try {
    device.check(driver->cuGraphCreate(&graph_, 0), "making a graph");
    GraphBuilder(*this).add(level_, graph_, graph, works, nullptr);
    device.check(driver->cuGraphInstantiateWithFlags(&executable_, graph_, 0), "instantiating a graph");
    const Ref<Stream> stream = device.create_stream({});
    device.check(driver->cuGraphUpload(executable_, static_cast<CudaStream&>(*stream).native()), "uploading a graph");
  } catch (...) {
    destroy();
    throw;
  }
}

// Runs on any thread, including the poller, with no lock of ours held; the driver takes its own. Does not block,
// because the driver lets launched graphs finish. A forked child must not call the driver.
BuiltGraph::~BuiltGraph() {
  if (forked()) return;
  const ContextScope scope(device_.context());
  destroy();
}

void BuiltGraph::destroy() noexcept {
  if (executable_) driver->cuGraphExecDestroy(executable_);
  if (graph_) driver->cuGraphDestroy(graph_);
}

bool BuiltGraph::update(BuiltLevel& level, const Graph& graph, const Works& works) {
  if (level.version == works.version) return true;
  level.version = 0;
  for (std::size_t i = 0; i < level.nodes.size(); ++i) {
    BuiltLevel::Node& node = level.nodes[i];
    const Ref<Work>& work = works.of[i];
    if (!work || node.version == work->version) continue;
    node.version = 0;
    if (std::holds_alternative<Ref<ExternalWork>>(work->what)) return false;
    if (node.body) {
      if (!update_nested(node, *work)) return false;
      node.nested = work;
    } else {
      auto& device = static_cast<CudaBackend&>(graph.nodes[i].device->device());
      const ContextScope scope(&device == &device_ ? nullptr : device.context());
      Renewal renewal(device, executable_, {nodes_.data() + node.first, node.count});
      split(device, *work, renewal);
      if (!renewal.complete()) return false;
      const auto* launch = std::get_if<KernelWork>(&work->what);
      if (launch && !(launch->kernel == node.kernel)) node.kernel = launch->kernel;
    }
    node.version = work->version;
  }
  level.version = works.version;
  return true;
}

bool BuiltGraph::update_nested(BuiltLevel::Node& node, const Work& work) {
  const auto& before = std::get<NestedWork>(node.nested->what);
  const auto* after = std::get_if<NestedWork>(&work.what);
  if (!after || after->body != before.body || after->otherwise != before.otherwise || after->flag != before.flag)
    return false;
  if (!update(*node.body, *after->body, *after->works)) return false;
  return !node.otherwise || update(*node.otherwise, *after->otherwise, *after->otherwise_works);
}

}  // namespace anabranch::cuda
