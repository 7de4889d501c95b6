#pragma once

#include <vector>

#include "built_graph.hpp"

namespace anabranch::cuda {

// Hands on what the node's work comes to; the context of its device is current. Nothing for the kinds that run nothing
// themselves.
void split(CudaBackend& device, const Work& work, Primitives& primitives);

CUDA_MEMCPY3D copy_parameters(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) noexcept;
CUDA_MEMSET_NODE_PARAMS set_parameters(CUdeviceptr to, unsigned value, unsigned itemsize, std::size_t count) noexcept;

// Adds the nodes of a graph, and of those within it, to one of the driver's.
class GraphBuilder {
 public:
  explicit GraphBuilder(BuiltGraph& built) : built_(built) {}
  // Into `target`. The nodes that come after no other come after `entry`, unless it is null. Returns those that no
  // other comes after, or `entry`.
  std::vector<CUgraphNode> add(BuiltLevel& level, CUgraph target, const Graph& graph, const Works& works,
                               CUgraphNode entry);

 private:
  // What is added comes after these.
  struct Place {
    CUgraph target;
    std::vector<CUgraphNode> after;
  };
  class Chain;

  // Each returns the node that its successors come after; null if they come after nothing.
  CUgraphNode add(BuiltLevel::Node& node, CudaBackend& device, NodeKind kind, const Ref<Work>& work, Place& place);
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
