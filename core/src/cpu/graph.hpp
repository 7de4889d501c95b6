#pragma once

#include <cstdint>

#include "anabranch/graph/graph.hpp"
#include "plan.hpp"
#include "stream.hpp"

namespace anabranch::cpu {

class GraphTask;

// A graph whose nodes are all on CPU devices. A replay is one operation of the stream that it is launched on. The nodes
// run in the pools of their devices, with that stream's priority.
class CpuExecutable final : public Executable, private Replay {
 public:
  // Null if a node, or one of a nested graph, is on a device of another kind. Throws Error(device) for kernels launched
  // with blocks.
  static Ref<Executable> make(const Ref<Graph>& graph, const Ref<Works>& works);

  // Requires a stream of a CPU device.
  Point launch(Stream& stream, const Ref<Works>& works) override;

 private:
  friend class GraphTask;
  CpuExecutable(const Ref<Graph>& graph, const Works& works) : graph_(graph), plan_(*this, *graph, works) {}
  void over() noexcept override;
  void nodes_over() noexcept override;

  const Ref<Graph> graph_;  // keeps the memory of the nodes alive
  Plan plan_;
  std::uint64_t checked_ = 0;  // the version of the newest works that passed `refuse_blocks`
  GraphTask* task_ = nullptr;  // the running replay
};

}  // namespace anabranch::cpu
