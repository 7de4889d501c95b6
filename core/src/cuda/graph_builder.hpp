#pragma once

#include <vector>

#include "built_graph.hpp"

namespace anabranch::cuda {

// Passes on the driver operations that make up the node's work, with the context of its device current; none for kinds
// that run nothing themselves.
void split(CudaBackend& device, const Work& work, Primitives& primitives);

CUDA_MEMCPY3D copy_parameters(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) noexcept;
CUDA_MEMSET_NODE_PARAMS set_parameters(CUdeviceptr to, unsigned value, unsigned itemsize, std::size_t count) noexcept;

// Adds the nodes of a graph and of its nested graphs to a graph of the driver.
class GraphBuilder {
 public:
  explicit GraphBuilder(BuiltGraph& built) : built_(built) {}
  // Adds the nodes to `target`. Nodes without predecessors come after `entry`, unless it is null. Returns the nodes
  // without successors, or `entry`.
  std::vector<CUgraphNode> add(BuiltLevel& level, CUgraph target, const Graph& graph, const Works& works,
                               CUgraphNode entry);

 private:
  // The place for new nodes: the target graph and their predecessors.
  struct Place {
    CUgraph target;
    std::vector<CUgraphNode> after;
  };
  class Chain;

  // Each returns the node that the successors come after; null if they come after nothing.
  CUgraphNode add(BuiltLevel::Node& node, CudaBackend& device, NodeKind kind, const Ref<Work>& work, Place& place);
  CUgraphNode add_external(CudaBackend& device, ExternalWork& work, const Place& place);
  CUgraphNode add_condition(BuiltLevel::Node& node, CudaBackend& device, NodeKind kind, const NestedWork& nested,
                            Place& place);
  CUgraphNode join(CudaBackend& device, const Place& place);
  CUgraphNode set_conditions(CudaBackend& device, const Place& place, const std::int32_t* flag,
                             const CUgraphConditionalHandle* handles, int count);
  CUgraphNode add_body(CudaBackend& device, const Place& place, CUgraphConditionalHandle handle,
                       CUgraphConditionalNodeType type, CUgraph& body);

  BuiltGraph& built_;
};

}  // namespace anabranch::cuda
