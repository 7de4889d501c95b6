#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "anabranch/graph.hpp"
#include "primitive.hpp"

namespace anabranch::cuda {

class CudaBackend;

// A node of the driver's.
struct BuiltNode {
  enum class Kind : std::uint8_t { copy, set, kernel };
  Kind kind = Kind::kernel;
  CUgraphNode handle = nullptr;
  LaunchAttributes attributes;
};

// A graph as it was built: what each of its nodes runs, and which nodes of the driver's that came to.
struct BuiltLevel {
  struct Node {
    std::uint64_t version = 0;  // of the work taken up last; 0: none, or that did not come about
    Ref<Kernel> kernel;         // that it launches
    Ref<Work> nested;           // taken up last, if it has graphs within
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    std::unique_ptr<BuiltLevel> body, otherwise;  // the graphs within
  };
  std::uint64_t version = 0;  // of the works taken up; 0: of several
  std::vector<Node> nodes;
};

// A graph of the driver's, instantiated. The nodes of nested graphs are its own; those of branches and loops are the
// bodies of conditional nodes. Several threads may not use it at the same time.
class BuiltGraph {
 public:
  // Uploads it, too. Throws DriverError, and Error(device) for a kernel of another device.
  BuiltGraph(CudaBackend& device, const Graph& graph, const Works& works);
  BuiltGraph(const BuiltGraph&) = delete;
  BuiltGraph& operator=(const BuiltGraph&) = delete;
  // What was launched goes on.
  ~BuiltGraph();

  // From the next launch on it runs these works. False if it has to be built anew for that. Throws for a device that
  // failed, Error(device).
  bool update(const Graph& graph, const Works& works) { return update(level_, graph, works); }
  CUgraphExec executable() const noexcept { return executable_; }
  // That of its last node that runs one, or null.
  Kernel* last_kernel() const noexcept { return last_ ? last_->kernel.get() : nullptr; }

 private:
  friend class GraphBuilder;
  bool update(BuiltLevel& level, const Graph& graph, const Works& works);
  bool update_nested(BuiltLevel::Node& node, const Work& work);
  void destroy() noexcept;

  CudaBackend& device_;
  CUgraph graph_ = nullptr;  // whose nodes updates name
  CUgraphExec executable_ = nullptr;
  BuiltLevel level_;
  std::vector<BuiltNode> nodes_;
  const BuiltLevel::Node* last_ = nullptr;  // of a kernel
};

}  // namespace anabranch::cuda
