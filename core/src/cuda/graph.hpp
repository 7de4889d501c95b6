#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "built_graph.hpp"

namespace anabranch::cuda {

class CudaStream;

// Whether the driver can run the graph as a whole: all nodes are on GPUs, none is a host function, each branch or loop
// is on one GPU, and the driver has conditional nodes if there is one.
bool runs_whole(const Graph& graph, const Works& works);

// A graph that the driver runs. It is built from the recorded nodes, not captured from driver streams, so concurrent
// work of other threads or libraries neither enters nor breaks it.
class CudaExecutable final : public Executable {
 public:
  // Requires `runs_whole`. Throws DriverError, Error(device).
  CudaExecutable(CudaBackend& device, Ref<Graph> graph, const Ref<Works>& works);

  // A launch with new works applies them to the graph; earlier launches keep theirs. Throws Error(value) if they
  // contain graphs that do not run as a whole.
  Point launch(Stream& stream, const Ref<Works>& works) override;
  // The number of builds: one, plus one for each change that the driver cannot make in an instantiated graph.
  std::uint64_t builds() const noexcept { return builds_.load(std::memory_order_relaxed); }

 private:
  // Calls are serialised like the launches, including those that a stream holds, because each waits for the one before.
  void submit(CudaStream& stream, CUstream native, const Works& works);
  void take_up(const Works& works);

  CudaBackend& device_;
  const Ref<Graph> graph_;
  std::unique_ptr<BuiltGraph> built_;
  std::uint64_t version_ = 0;  // of the current works; 0: mixed
  std::atomic<std::uint64_t> builds_{1};
};

}  // namespace anabranch::cuda
