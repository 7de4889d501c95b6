#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "built_graph.hpp"

namespace anabranch::cuda {

class CudaStream;

// Whether the driver can run the graph as a whole: all is on GPUs, without host functions, and it has what branches and
// loops need, each of which is on one GPU.
bool runs_whole(const Graph& graph, const Works& works);

// A graph that the driver runs. It is built from the recording, not captured from streams, so nothing that other
// threads or libraries do meanwhile gets into it or breaks it.
class CudaExecutable final : public Executable {
 public:
  // Only for what `runs_whole`. Throws DriverError, Error(device).
  CudaExecutable(CudaBackend& device, Ref<Graph> graph, const Ref<Works>& works);

  // New works are taken up by the launch that has them; those before keep theirs. Throws Error(value) if they are of
  // graphs that do not run as a whole.
  Point launch(Stream& stream, const Ref<Works>& works) override;
  // How often it was built: once, and for each change that the driver cannot make in an instantiated graph.
  std::uint64_t builds() const noexcept { return builds_.load(std::memory_order_relaxed); }

 private:
  // As the launches, one after the other: also those that a stream holds, since each waits for the one before.
  void submit(CudaStream& stream, CUstream native, const Works& works);
  void take_up(const Works& works);

  CudaBackend& device_;
  const Ref<Graph> graph_;
  std::unique_ptr<BuiltGraph> built_;
  std::uint64_t version_ = 0;  // of the works that it has; 0: of several
  std::atomic<std::uint64_t> builds_{1};
};

}  // namespace anabranch::cuda
