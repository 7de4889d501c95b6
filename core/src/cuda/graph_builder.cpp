#include "graph_builder.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "backend.hpp"

namespace anabranch::cuda {

void split(CudaBackend& device, const Work& work, Primitives& primitives) {
  if (const auto* launch = std::get_if<KernelWork>(&work.what)) {
    CudaKernel& kernel = kernel_of(device, *launch->kernel);
    std::visit([&](const auto& grid) { kernel.launch(primitives, grid, launch->arguments); }, launch->grid);
  } else if (const CopyWork* copy = work.copy()) {
    device.reach(copy->dst);
    device.reach(copy->src);
    device.transfer().copy(primitives, copy->dst, copy->src, copy->count);
  } else if (const FillWork* fill = work.fill()) {
    device.transfer().fill(primitives, fill->dst, fill->value, fill->count);
  }
}

CUDA_MEMCPY3D copy_parameters(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) noexcept {
  CUDA_MEMCPY3D copy;
  std::memset(&copy, 0, sizeof copy);
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = from;
  copy.dstDevice = to;
  copy.srcPitch = copy.dstPitch = copy.WidthInBytes = bytes;
  copy.srcHeight = copy.dstHeight = copy.Height = copy.Depth = 1;
  return copy;
}

CUDA_MEMSET_NODE_PARAMS set_parameters(CUdeviceptr to, unsigned value, unsigned itemsize, std::size_t count) noexcept {
  return {to, count * itemsize, value, itemsize, count, 1};
}

// Adds primitives, each after the one before.
class GraphBuilder::Chain final : public Primitives {
 public:
  Chain(BuiltGraph& built, CudaBackend& device, Place& place, const Work& work)
      : built_(built), device_(device), place_(place), work_(work) {}

  void copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) override {
    const CUDA_MEMCPY3D parameters = copy_parameters(to, from, bytes);
    CUgraphNode node = nullptr;
    check(driver->cuGraphAddMemcpyNode(&node, place_.target, place_.after.data(), place_.after.size(), &parameters,
                                       device_.context()));
    append({BuiltNode::Kind::copy, node, {}});
  }
  void set(CUdeviceptr to, unsigned value, unsigned itemsize, std::size_t count) override {
    const CUDA_MEMSET_NODE_PARAMS parameters = set_parameters(to, value, itemsize, count);
    CUgraphNode node = nullptr;
    check(driver->cuGraphAddMemsetNode(&node, place_.target, place_.after.data(), place_.after.size(), &parameters,
                                       device_.context()));
    append({BuiltNode::Kind::set, node, {}});
  }
  void launch(const CUDA_KERNEL_NODE_PARAMS& kernel, const LaunchAttributes& attributes) override {
    CUgraphNode node = nullptr;
    check(driver->cuGraphAddKernelNode(&node, place_.target, place_.after.data(), place_.after.size(), &kernel));
    CUkernelNodeAttrValue value{};
    if (attributes.cluster[0] != 0) {
      value.clusterDim = {attributes.cluster[0], attributes.cluster[1], attributes.cluster[2]};
      check(driver->cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value));
    }
    if (attributes.cooperative) {
      value = {};
      value.cooperative = 1;
      check(driver->cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    }
    append({BuiltNode::Kind::kernel, node, attributes});
  }

 private:
  void check(CUresult status) {
    if (status == CUDA_SUCCESS) return;
    const auto* launch = std::get_if<KernelWork>(&work_.what);
    const std::string name = launch ? "kernel '" + launch->kernel->name + "'" : "a copy or a fill";
    device_.check(status, ("adding " + name + " to a graph").c_str());
  }
  void append(const BuiltNode& node) {
    built_.nodes_.push_back(node);
    place_.after.assign(1, node.handle);
  }

  BuiltGraph& built_;
  CudaBackend& device_;
  Place& place_;
  const Work& work_;
};

std::vector<CUgraphNode> GraphBuilder::add(BuiltLevel& level, CUgraph target, const Graph& graph, const Works& works,
                                           CUgraphNode entry) {
  std::vector<CUgraphNode> tails(graph.nodes.size());
  std::vector<bool> is_leaf(graph.nodes.size(), true);
  level.nodes.resize(graph.nodes.size());
  Place place{target, {}};
  // The driver rejects duplicate dependencies.
  const auto collect = [&place, entry](auto&& each) {
    place.after.clear();
    each([&place](CUgraphNode node) {
      if (node) place.after.push_back(node);
    });
    if (place.after.size() > 1) {
      std::sort(place.after.begin(), place.after.end());
      place.after.erase(std::unique(place.after.begin(), place.after.end()), place.after.end());
    }
    if (place.after.empty() && entry) place.after.push_back(entry);
  };
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    collect([&](auto&& add_tail) {
      for (const std::uint32_t before : node.after) {
        is_leaf[before] = false;
        add_tail(tails[before]);
      }
    });
    auto& device = static_cast<CudaBackend&>(node.device->device());
    const ContextScope scope(&device == &built_.device_ ? nullptr : device.open());
    tails[i] = add(level.nodes[i], device, node.kind, works.of[i], place);
  }
  collect([&](auto&& add_tail) {
    for (std::size_t i = 0; i < tails.size(); ++i) {
      if (is_leaf[i]) add_tail(tails[i]);
    }
  });
  level.version = works.version;
  return std::move(place.after);
}

CUgraphNode GraphBuilder::add(BuiltLevel::Node& node, CudaBackend& device, NodeKind kind, const Ref<Work>& work,
                              Place& place) {
  if (work) node.version = work->version;
  if (const auto* nested = work ? std::get_if<NestedWork>(&work->what) : nullptr) {
    node.nested = work;
    if (kind != NodeKind::graph) return add_condition(node, device, kind, *nested, place);
    const CUgraphNode entry = join(device, place);
    node.body = std::make_unique<BuiltLevel>();
    place.after = add(*node.body, place.target, *nested->body, *nested->works, entry);
    return join(device, place);
  }
  node.first = static_cast<std::uint32_t>(built_.nodes_.size());
  if (const auto* external = work ? std::get_if<Ref<ExternalWork>>(&work->what) : nullptr)
    return add_external(device, **external, place);
  if (work) {
    Chain chain(built_, device, place, *work);
    split(device, *work, chain);
    if (const auto* launch = std::get_if<KernelWork>(&work->what)) {
      node.kernel = launch->kernel;
      built_.last_ = &node;
    }
  }
  node.count = static_cast<std::uint32_t>(built_.nodes_.size()) - node.first;
  return join(device, place);
}

// The library's work is captured in a stream of its own, and becomes a child graph.
CUgraphNode GraphBuilder::add_external(CudaBackend& device, ExternalWork& work, const Place& place) {
  const std::string what = "capturing " + work.name;
  const Ref<Stream> stream = device.create_stream({.name = "capture"});
  const CUstream native = static_cast<CudaStream&>(*stream).native();
  CUgraph captured = nullptr;
  // Relaxed: libraries allocate at their first calls.
  device.check(driver->cuStreamBeginCapture(native, CU_STREAM_CAPTURE_MODE_RELAXED), what.c_str());
  try {
    work.enqueue(reinterpret_cast<std::uintptr_t>(native));
  } catch (...) {
    driver->cuStreamEndCapture(native, &captured);
    if (captured) driver->cuGraphDestroy(captured);
    throw;
  }
  device.check(driver->cuStreamEndCapture(native, &captured), what.c_str());
  CUgraphNode node = nullptr;
  const CUresult status =
      driver->cuGraphAddChildGraphNode(&node, place.target, place.after.data(), place.after.size(), captured);
  driver->cuGraphDestroy(captured);  // the node has a copy
  device.check(status, what.c_str());
  return node;
}

CUgraphNode GraphBuilder::join(CudaBackend& device, const Place& place) {
  if (place.after.size() < 2) return place.after.empty() ? nullptr : place.after.front();
  CUgraphNode node = nullptr;
  device.check(driver->cuGraphAddEmptyNode(&node, place.target, place.after.data(), place.after.size()),
               "joining branches of a graph");
  return node;
}

CUgraphNode GraphBuilder::set_conditions(CudaBackend& device, const Place& place, const std::int32_t* flag,
                                         const CUgraphConditionalHandle* handles, int count) {
  std::array<CUgraphConditionalHandle, 2> values{};
  std::copy_n(handles, count, values.begin());
  auto pointer = reinterpret_cast<CUdeviceptr>(flag);
  std::array<void*, 3> parameters{values.data(), &pointer, nullptr};
  if (count == 2) parameters = {values.data(), values.data() + 1, &pointer};
  const CUfunction function = count == 2 ? device.conditions().both() : device.conditions().one();
  const CUDA_KERNEL_NODE_PARAMS kernel{function, 1, 1, 1, 1, 1, 1, 0, parameters.data(), nullptr, nullptr, nullptr};
  CUgraphNode node = nullptr;
  device.check(driver->cuGraphAddKernelNode(&node, place.target, place.after.data(), place.after.size(), &kernel),
               "adding a condition to a graph");
  return node;
}

CUgraphNode GraphBuilder::add_body(CudaBackend& device, const Place& place, CUgraphConditionalHandle handle,
                                   CUgraphConditionalNodeType type, CUgraph& body) {
  CUgraphNodeParams parameters{};
  parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  parameters.conditional.handle = handle;
  parameters.conditional.type = type;
  parameters.conditional.size = 1;
  parameters.conditional.ctx = device.context();
  CUgraphNode node = nullptr;
  device.check(
      driver->cuGraphAddNode(&node, place.target, place.after.data(), nullptr, place.after.size(), &parameters),
      "adding a branch or a loop to a graph");
  body = parameters.conditional.phGraph_out[0];
  return node;
}

CUgraphNode GraphBuilder::add_condition(BuiltLevel::Node& node, CudaBackend& device, NodeKind kind,
                                        const NestedWork& nested, Place& place) {
  const bool loops = kind == NodeKind::loop;
  const int count = nested.otherwise && !loops ? 2 : 1;
  std::array<CUgraphConditionalHandle, 2> handles{};
  for (int i = 0; i < count; ++i) {
    device.check(driver->cuGraphConditionalHandleCreate(&handles[i], place.target, device.context(), 0, 0),
                 "adding a condition to a graph");
  }
  CUgraphNode last = set_conditions(device, place, nested.flag, handles.data(), count);
  place.after.assign(1, last);

  CUgraph body = nullptr;
  last = add_body(device, place, handles[0], loops ? CU_GRAPH_COND_TYPE_WHILE : CU_GRAPH_COND_TYPE_IF, body);
  place.after.assign(1, last);
  node.body = std::make_unique<BuiltLevel>();
  Place inner{body, add(*node.body, body, *nested.body, *nested.works, nullptr)};
  if (loops) set_conditions(device, inner, nested.flag, handles.data(), 1);
  if (count == 2) {
    // A second IF node, because nodes with both bodies need CUDA 12.8. At most one of the two runs.
    last = add_body(device, place, handles[1], CU_GRAPH_COND_TYPE_IF, body);
    node.otherwise = std::make_unique<BuiltLevel>();
    add(*node.otherwise, body, *nested.otherwise, *nested.otherwise_works, nullptr);
  }
  return last;
}

}  // namespace anabranch::cuda
