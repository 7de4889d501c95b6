#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "anabranch/graph/graph.hpp"
#include "primitive.hpp"

namespace anabranch::cuda {

class CudaBackend;

// One of the driver's nodes.
struct BuiltNode {
  enum class Kind : std::uint8_t { copy, set, kernel };
  Kind kind = Kind::kernel;
  CUgraphNode handle = nullptr;
  LaunchAttributes attributes;
};

// A graph as built: the work of each of its nodes, and the driver's nodes for it.
struct BuiltLevel {
  struct Node {
    std::uint64_t version = 0;  // of the node's current work; 0: none, or its update failed
    Ref<Kernel> kernel;         // the kernel that it launches
    Ref<Work> nested;           // its current work, if that contains graphs
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::unique_ptr<BuiltLevel> body, otherwise;  // the nested graphs
  };
  std::uint64_t version = 0;  // of the current works; 0: mixed
  std::vector<Node> nodes;
};

// An instantiated graph of the driver. It contains the nodes of nested graphs directly, and those of branches and loops
// as bodies of conditional nodes. Not thread-safe.
class BuiltGraph {
 public:
  // Builds, instantiates and uploads the graph. Throws DriverError, and Error(device) for a kernel of another device.
  BuiltGraph(CudaBackend& device, const Graph& graph, const Works& works);
  BuiltGraph(const BuiltGraph&) = delete;
  BuiltGraph& operator=(const BuiltGraph&) = delete;
  // Launched replays continue.
  ~BuiltGraph();

  // Makes later launches run these works. Returns false if the graph must be built anew for that. Throws AsyncError if
  // the device has failed, and Error(device).
  bool update(const Graph& graph, const Works& works) { return update(level_, graph, works); }
  CUgraphExec executable() const noexcept { return executable_; }
  // The kernel of its last node that runs one, or null.
  Kernel* last_kernel() const noexcept { return last_ ? last_->kernel.get() : nullptr; }

 private:
  friend class GraphBuilder;
  bool update(BuiltLevel& level, const Graph& graph, const Works& works);
  bool update_nested(BuiltLevel::Node& node, const Work& work);
  void destroy() noexcept;

  CudaBackend& device_;
  CUgraph graph_ = nullptr;  // updates refer to its nodes
  CUgraphExec executable_ = nullptr;
  BuiltLevel level_;
  std::vector<BuiltNode> nodes_;
  const BuiltLevel::Node* last_ = nullptr;  // the last node with a kernel
};

}  // namespace anabranch::cuda
