#include "graph.hpp"

#include <algorithm>
#include <utility>

#include "backend.hpp"

namespace anabranch::cpu {

// A replay in its stream.
class GraphTask final : public Task {
 public:
  GraphTask(Ref<CpuExecutable> executable, Ref<Works> works)
      : executable_(std::move(executable)), works_(std::move(works)) {}

  Step start(CpuStream& stream, Ref<Failure>& failure) noexcept override {
    CpuExecutable& executable = *executable_;
    stream_ = &stream;
    executable.task_ = this;
    executable.open(stream.priority() < 0, works_->context);
    if (!executable.plan_.run(*works_, stream.pool())) return Step::parked;
    failure = executable.close();
    return Step::done;
  }
  explore::Description describe() const override { return {"graph"}; }
  bool ready() const noexcept override { return nodes_ != Nodes::running; }
  bool begin_parts(CpuStream& stream) noexcept override {
    CpuExecutable& executable = *executable_;
    executable.task_ = this;
    executable.open(false, works_->context);
    executable.explore(&stream.runnable());
    nodes_ = Nodes::running;
    if (executable.plan_.begin_nodes(*works_, stream.pool())) nodes_ = Nodes::over;
    return true;
  }
  Step step(CpuStream& stream, Ref<Failure>& failure) noexcept override {
    if (nodes_ == Nodes::unknown) return start(stream, failure);
    executable_->explore(nullptr);
    failure = executable_->close();
    return Step::done;
  }
  // Runs in a failed stream, which does not wait for the previous replay, so that one may be running.
  void skip(const Ref<Failure>& failure) noexcept override {
    executable_->plan_.skip(*works_, works_->context, failure);
  }
  void over(Ref<Failure> failure) noexcept {
    note_end();
    stream_->resume(std::move(failure));
  }
  void nodes_over() noexcept { nodes_ = Nodes::over; }

 private:
  enum class Nodes : std::uint8_t { unknown, running, over };

  const Ref<CpuExecutable> executable_;
  const Ref<Works> works_;
  CpuStream* stream_ = nullptr;
  Nodes nodes_ = Nodes::unknown;  // of a replay whose nodes are explored
};

namespace {

bool runs_here(const Graph& graph, const Works& works) {
  for (const GraphNode& node : graph.nodes) {
    if (!dynamic_cast<CpuBackend*>(node.device)) return false;
  }
  return std::all_of(works.of.begin(), works.of.end(), [](const Ref<Work>& work) {
    const auto* nested = work ? std::get_if<NestedWork>(&work->what) : nullptr;
    return !nested || (runs_here(*nested->body, *nested->works) &&
                       (!nested->otherwise || runs_here(*nested->otherwise, *nested->otherwise_works)));
  });
}

void refuse_blocks(const Graph& graph, const Works& works) {
  for (std::size_t i = 0; i < works.of.size(); ++i) {
    if (!works.of[i]) continue;
    const Work::What& what = works.of[i]->what;
    if (const auto* kernel = std::get_if<KernelWork>(&what)) {
      if (std::holds_alternative<LaunchGrid>(kernel->grid))
        static_cast<CpuBackend*>(graph.nodes[i].device)->refuse_blocks(*kernel->kernel);
    } else if (const auto* nested = std::get_if<NestedWork>(&what)) {
      refuse_blocks(*nested->body, *nested->works);
      if (nested->otherwise) refuse_blocks(*nested->otherwise, *nested->otherwise_works);
    }
  }
}

}  // namespace

Ref<Executable> CpuExecutable::make(const Ref<Graph>& graph, const Ref<Works>& works) {
  if (!runs_here(*graph, *works)) return nullptr;
  refuse_blocks(*graph, *works);
  return Ref<Executable>::take(new CpuExecutable(graph, *works));
}

Point CpuExecutable::launch(Stream& stream, const Ref<Works>& works) {
  if (works->version != checked_) {
    refuse_blocks(*graph_, *works);
    checked_ = works->version;
  }
  return static_cast<CpuStream&>(stream).push(std::make_unique<GraphTask>(Ref<CpuExecutable>::share(this), works));
}

// The task, and with it this executable, may be destroyed as soon as its stream continues.
void CpuExecutable::over() noexcept { task_->over(close()); }
void CpuExecutable::nodes_over() noexcept { task_->nodes_over(); }

Ref<Executable> CpuBackend::instantiate(const Ref<Graph>& graph, const Ref<Works>& works) {
  return CpuExecutable::make(graph, works);
}

}  // namespace anabranch::cpu
