#include "graph.hpp"

#include "backend.hpp"

namespace anabranch::cuda {
namespace {

CudaBackend* gpu_of(Backend* device) noexcept {
  return device ? dynamic_cast<CudaBackend*>(&device->device()) : nullptr;
}

bool elsewhere(const Elements& elements, const CudaBackend& device) noexcept {
  const CudaBackend* home = gpu_of(elements.home);
  return home && home != &device;
}

// Whether a node's copy accesses another GPU's memory.
bool crosses(const Work& work, const CudaBackend& device) noexcept {
  const CopyWork* copy = work.copy();
  return copy && (elsewhere(copy->dst, device) || elsewhere(copy->src, device));
}

// Within a branch or a loop, everything must be on `only`.
bool runs_whole(const Graph& graph, const Works& works, const CudaBackend* only) {
  const Backend* last = nullptr;  // most nodes are on the same device as the one before
  const CudaBackend* device = nullptr;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    const Ref<Work>& work = works.of[i];
    if (node.device != last) device = gpu_of(node.device);
    last = node.device;
    if (!device || node.kind == NodeKind::host) return false;
    // Work after a failed kernel must not run, so the host has to check first.
    const auto* launch = work ? std::get_if<KernelWork>(&work->what) : nullptr;
    if (launch && launch->kernel->may_fail()) return false;
    if (only && (device != only || (work && crosses(*work, *only)))) return false;
    const auto* nested = work ? std::get_if<NestedWork>(&work->what) : nullptr;
    const bool conditional = node.kind == NodeKind::branch || node.kind == NodeKind::loop;
    if (!nested) {
      if (conditional || node.kind == NodeKind::graph) return false;
      continue;
    }
    if (conditional && !Conditions::exist()) return false;
    const CudaBackend* within = conditional ? device : only;
    if (!runs_whole(*nested->body, *nested->works, within)) return false;
    if (nested->otherwise && !runs_whole(*nested->otherwise, *nested->otherwise_works, within)) return false;
  }
  return true;
}

}  // namespace

bool runs_whole(const Graph& graph, const Works& works) { return runs_whole(graph, works, nullptr); }

CudaExecutable::CudaExecutable(CudaBackend& device, Ref<Graph> graph, const Ref<Works>& works)
    : device_(device),
      graph_(std::move(graph)),
      built_(std::make_unique<BuiltGraph>(device, *graph_, *works)),
      version_(works->version) {}

Point CudaExecutable::launch(Stream& stream, const Ref<Works>& works) {
  auto* own = &stream.backend() == &device_ ? static_cast<CudaStream*>(&stream) : as_cuda(stream);
  if (!own) throw Error(ErrorKind::device, "a graph of " + device_.alias() + " is launched in a stream of a GPU");
  return own->enqueue([&](CUstream native) { submit(*own, native, *works); },
                      [&] {
                        return [own, works, self = Ref<CudaExecutable>::share(this)](CUstream native) {
                          self->submit(*own, native, *works);
                        };
                      });
}

void CudaExecutable::submit(CudaStream& stream, CUstream native, const Works& works) {
  if (works.version != version_) [[unlikely]]
    take_up(works);
  stream.device().check(driver->cuGraphLaunch(built_->executable(), native), "launching a graph");
  if (Kernel* kernel = built_->last_kernel()) stream.note_kernel(*kernel);
}

void CudaExecutable::take_up(const Works& works) {
  version_ = 0;
  const ContextScope scope(device_.context());
  if (!built_->update(*graph_, works)) {
    if (!runs_whole(*graph_, works)) {
      throw Error(ErrorKind::value, "the graph cannot be changed to one that " + device_.alias() + " cannot run");
    }
    built_ = std::make_unique<BuiltGraph>(device_, *graph_, works);
    builds_.fetch_add(1, std::memory_order_relaxed);
  }
  version_ = works.version;
}

Ref<Executable> CudaBackend::instantiate(const Ref<Graph>& graph, const Ref<Works>& works) {
  open();
  if (Ref<Failure> failed = failure()) throw AsyncError(std::move(failed));
  if (!runs_whole(*graph, *works)) return nullptr;
  return make_ref<CudaExecutable>(*this, graph, works);
}

}  // namespace anabranch::cuda
