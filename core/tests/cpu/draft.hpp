// Graphs made by hand.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "device.hpp"

namespace anabranch::cpu {

// A host function of a graph: a function that makes the operation of each replay.
class HostFunction final : public HostWork {
 public:
  explicit HostFunction(std::function<Ref<HostOperation>()> make) : make_(std::move(make)) {}
  Ref<HostOperation> make(const Ref<RefCounted>&) noexcept override { return make_(); }

 private:
  std::function<Ref<HostOperation>()> make_;
};

// An operation that calls one function when it is reached, or the other if it is not to run.
class Told final : public HostOperation {
 public:
  Told(std::function<void(Told&)> started, std::function<void()> skipped)
      : started_(std::move(started)), skipped_(std::move(skipped)) {}
  void start() noexcept override { started_(*this); }
  void skip(const Ref<Failure>&) noexcept override { skipped_(); }

 private:
  std::function<void(Told&)> started_;
  std::function<void()> skipped_;
};

using Nodes = std::vector<std::uint32_t>;

// A graph and its works while nodes are added.
struct Draft {
  explicit Draft(CpuBackend& device) : device(device) { graph->home = &device; }

  CpuBackend& device;
  Ref<Graph> graph = make_ref<Graph>();
  Ref<Works> works = make_ref<Works>();

  std::uint32_t add(NodeKind kind, Nodes after, Work::What what = {}, CpuBackend* where = nullptr) {
    graph->nodes.push_back({kind, "node", where ? where : &device, std::move(after), 0});
    works->of.push_back(make_ref<Work>(std::move(what)));
    return static_cast<std::uint32_t>(graph->nodes.size() - 1);
  }
  template <class T>
  std::uint32_t launch(Nodes after, void (*function)(std::int64_t, std::int64_t, T&), T& argument,
                       std::int64_t size = 1) {
    return add(NodeKind::kernel, std::move(after), kernel<T>(size, function, argument));
  }
  // A host function that is over when it returns; `skipped` is called in its stead if it is not to run.
  std::uint32_t call(Nodes after, std::function<void()> function, std::function<void()> skipped = [] {}) {
    const auto over = [function = std::move(function)](Told& told) {
      function();
      told.complete();
    };
    return host(std::move(after), [over, skipped = std::move(skipped)] { return make_ref<Told>(over, skipped); });
  }
  std::uint32_t log(Nodes after, const check::Log& log, const std::string& line) {
    return call(std::move(after), [log, line] { log.add(line); }, [log, line] { log.add("no " + line); });
  }
  std::uint32_t host(Nodes after, std::function<Ref<HostOperation>()> make) {
    return add(NodeKind::host, std::move(after), Ref<HostWork>(make_ref<HostFunction>(std::move(make))));
  }
  // One whose operations are all this one.
  std::uint32_t hold(Nodes after, const Ref<HostOperation>& pending) {
    return host(std::move(after), [pending] { return pending; });
  }
  std::uint32_t nest(Nodes after, const Draft& body) {
    return add(NodeKind::graph, std::move(after), NestedWork{nullptr, body.graph, body.works});
  }
  std::uint32_t branch(Nodes after, const std::int32_t& flag, const Draft& body, const Draft* otherwise = nullptr) {
    return add(NodeKind::branch, std::move(after),
               NestedWork{&flag, body.graph, body.works, otherwise ? otherwise->graph : nullptr,
                          otherwise ? otherwise->works : nullptr});
  }
  std::uint32_t loop(Nodes after, const std::int32_t& flag, const Draft& body) {
    return add(NodeKind::loop, std::move(after), NestedWork{&flag, body.graph, body.works});
  }
  Ref<Executable> ready() const { return device.instantiate(graph, works); }
  Ref<GraphInstance> instance() const { return make_ref<GraphInstance>(graph, works); }
};

// Enqueues a replay, after the one before.
inline Point replay(GraphInstance& instance, Stream& stream) { return instance.launch(stream); }

}  // namespace anabranch::cpu
