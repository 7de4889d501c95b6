#pragma once

#include <cstdint>

#include "anabranch/graph.hpp"
#include "plan.hpp"
#include "stream.hpp"

namespace anabranch::cpu {

class GraphTask;

// A graph whose nodes are all of CPU devices. A replay is one operation of the stream that it is launched on; its nodes
// run in the pools of their devices, with that stream's priority.
class CpuExecutable final : public Executable, private Replay {
 public:
  // Null if a node, or one of a graph within, is of another kind of device. Throws Error(device) for kernels that are
  // launched with blocks.
  static Ref<Executable> make(const Ref<Graph>& graph, const Ref<Works>& works);

  // The stream is one of a CPU device.
  Point launch(Stream& stream, const Ref<Works>& works) override;

 private:
  friend class GraphTask;
  CpuExecutable(const Ref<Graph>& graph, const Works& works) : graph_(graph), plan_(*this, *graph, works) {}
  void over() noexcept override;

  const Ref<Graph> graph_;  // and with it the memory that the nodes use
  Plan plan_;
  std::uint64_t checked_ = 0;  // the version of the newest works that this device was found to be able to run
  GraphTask* task_ = nullptr;  // the replay that runs
};

}  // namespace anabranch::cpu
