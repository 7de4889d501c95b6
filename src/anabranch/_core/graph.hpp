#pragma once

#include <Python.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "anabranch/_core/host_job.hpp"
#include "anabranch/graph/capture.hpp"
#include "anabranch/graph/graph.hpp"

// Graphs as the Cython modules use them.
namespace anabranch::python {

// Takes the point because another thread may have enqueued the next operation already.
inline void tell_origin(Stream& stream, Point point, PyObject* object) {
  stream.capture()->set_origin(stream, make_ref<PythonObject>(object), point);
}
inline PyObject* origin_of(const GraphNode& node) {
  PyObject* object = node.origin ? static_cast<PythonObject&>(*node.origin).object() : Py_None;
  Py_INCREF(object);
  return object;
}

// Includes the bodies of branches and loops, but not other graphs that are nodes.
inline void forget_origins(Graph& graph, const Works& works) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    GraphNode& node = graph.nodes[i];
    node.origin.reset();
    if (node.kind != NodeKind::branch && node.kind != NodeKind::loop) continue;
    const auto& nested = std::get<NestedWork>(works.of[i]->what);
    forget_origins(*nested.body, *nested.works);
    if (nested.otherwise) forget_origins(*nested.otherwise, *nested.otherwise_works);
  }
}

inline Ref<Capture> begin_capture(Stream& stream) { return Capture::begin(stream); }
// Captures the operations of a stream within the capture that it already takes part in.
inline Ref<Capture> begin_body(Stream& stream) { return Capture::begin(stream, Ref<Capture>::share(stream.capture())); }
inline Ref<Graph> end_capture(Capture& capture, Ref<Works>& works) { return capture.end(works); }
inline Ref<GraphInstance> instantiate(const Ref<Graph>& graph, const Ref<Works>& works) {
  return make_ref<GraphInstance>(graph, works);
}

inline Point add_nested(Stream& stream, NodeKind kind, const std::string& name, const void* flag, Ref<Graph> body,
                        Ref<Works> works, Ref<Graph> otherwise, Ref<Works> otherwise_works) {
  return stream.capture()->add(stream, kind, name,
                               NestedWork{static_cast<const std::int32_t*>(flag), std::move(body), std::move(works),
                                          std::move(otherwise), std::move(otherwise_works)});
}
inline Point add_host(Stream& stream, const std::string& name, Ref<HostWork> work) {
  return stream.capture()->add(stream, NodeKind::host, name, std::move(work));
}

// Launch shape of a kernel node; null if it was launched over blocks.
inline const LaunchShape* shape_of(const Works& works, std::uint32_t node) {
  return std::get_if<LaunchShape>(&std::get<KernelWork>(works.of[node]->what).grid);
}
inline const LaunchGrid* grid_of(const Works& works, std::uint32_t node) {
  return std::get_if<LaunchGrid>(&std::get<KernelWork>(works.of[node]->what).grid);
}
inline std::vector<Backend*> devices_of(const Graph& graph) {
  std::vector<Backend*> found{graph.home};
  for (const GraphNode& node : graph.nodes) {
    if (std::find(found.begin(), found.end(), node.device) == found.end()) found.push_back(node.device);
  }
  return found;
}
// Nodes that may call host functions.
inline std::vector<std::uint32_t> with_functions(const Graph& graph) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].kind >= NodeKind::host) found.push_back(i);
  }
  return found;
}

// Whether another library enqueues any of the work, at any depth.
inline bool has_external(const Works& works) {
  return std::any_of(works.of.begin(), works.of.end(), [](const Ref<Work>& work) {
    if (!work) return false;
    if (std::holds_alternative<Ref<ExternalWork>>(work->what)) return true;
    const auto* nested = std::get_if<NestedWork>(&work->what);
    return nested &&
           (has_external(*nested->works) || (nested->otherwise_works && has_external(*nested->otherwise_works)));
  });
}

// Merges the accesses of a graph into those of one operation: of each block, every byte once, with all that the nodes
// do to it, in as few ranges as that takes. Beside these are those of strided arrays, each array once, of up to
// `most_strided` per block; further ones count as ranges. As long as `touches` live.
inline std::vector<Touch> merged(const std::vector<NodeTouch>& touches) {
  constexpr std::size_t most_strided = 8;
  // How many more accesses read and write from a byte on than before it.
  struct Change {
    int reads = 0;
    int writes = 0;
  };
  struct Block {
    std::map<std::size_t, Change> changes;
    std::vector<NodeTouch> strided;
  };
  const auto both = [](Access one, Access other) {
    if (!reads(one) && !reads(other)) return Access::write;
    return writes(one) || writes(other) ? Access::read_write : Access::read;
  };
  const auto add_strided = [&both](std::vector<NodeTouch>& strided, const NodeTouch& touch) {
    if (touch.where.whole()) return false;
    const auto same = std::find_if(strided.begin(), strided.end(), [&touch](const NodeTouch& other) {
      return touch.where.contains(other.where) && other.where.contains(touch.where);
    });
    if (same != strided.end()) {
      same->access = both(same->access, touch.access);
    } else if (strided.size() < most_strided) {
      strided.push_back(touch);
    } else {
      return false;
    }
    return true;
  };
  std::map<Storage*, Block> blocks;
  for (const NodeTouch& touch : touches) {
    const auto& [low, high] = touch.where.bytes();
    if (low == high) continue;
    Block& block = blocks[touch.storage];
    if (add_strided(block.strided, touch)) continue;
    for (const auto& [place, step] : {std::pair{low, 1}, std::pair{high, -1}}) {
      if (reads(touch.access)) block.changes[place].reads += step;
      if (writes(touch.access)) block.changes[place].writes += step;
    }
  }
  std::vector<Touch> found;
  for (const auto& [storage, block] : blocks) {
    Change now;
    Touch* last = nullptr;
    for (auto it = block.changes.begin(); it != block.changes.end(); ++it) {
      now.reads += it->second.reads;
      now.writes += it->second.writes;
      if (now.reads == 0 && now.writes == 0) continue;
      const std::size_t end = std::next(it)->first;
      const Access access = now.writes == 0 ? Access::read : now.reads == 0 ? Access::write : Access::read_write;
      if (last && last->high == it->first && last->access == access) {
        last->high = end;
      } else {
        last = &found.emplace_back(Touch{storage, it->first, end, nullptr, 0, access, false});
      }
    }
    for (const NodeTouch& touch : block.strided) found.push_back(as_touch(touch));
  }
  return found;
}

// Addresses of bytes of a block. They are unique across devices, and identify memory that several handles share, each
// with a storage of its own.
inline ByteRange addresses_of(const Storage& storage, const ByteRange& bytes) noexcept {
  const auto first = reinterpret_cast<std::uintptr_t>(storage.pointer());
  return {first + bytes.low, first + bytes.high};
}
inline bool share_bytes(const Storage& one, const Storage& other) noexcept {
  return addresses_of(one, {0, one.bytes()}).overlaps(addresses_of(other, {0, other.bytes()}));
}

// Nodes that conflict with `node` and are unordered with it.
inline std::vector<std::uint32_t> unordered(const Graph& graph, const std::vector<NodeTouch>& touches,
                                            std::uint32_t node) {
  std::vector<bool> ordered(graph.nodes.size());
  ordered[node] = true;
  for (std::uint32_t later = node + 1; later < graph.nodes.size(); ++later) {
    const auto& after = graph.nodes[later].after;
    ordered[later] = std::any_of(after.begin(), after.end(), [&](std::uint32_t one) { return ordered[one]; });
  }
  std::vector<bool> before(node + 1);
  before[node] = true;
  for (std::uint32_t earlier = node + 1; earlier-- > 0;) {
    if (!before[earlier]) continue;
    ordered[earlier] = true;
    for (const std::uint32_t one : graph.nodes[earlier].after) before[one] = true;
  }
  std::vector<std::uint32_t> found;
  for (const NodeTouch& own : touches) {
    if (own.node != node) continue;
    const ByteRange bytes = addresses_of(*own.storage, own.where.bytes());
    for (const NodeTouch& other : touches) {
      if (ordered[other.node] || !addresses_of(*other.storage, other.where.bytes()).overlaps(bytes)) continue;
      if (own.storage == other.storage && !own.where.overlaps(other.where)) continue;
      if (writes(own.access) || writes(other.access)) found.push_back(other.node);
    }
  }
  return found;
}

inline GraphAccesses take_accesses(Graph& graph) { return std::exchange(graph.accesses, {}); }

// Replaces the work of a node of an instance by that of a graph's only node.
inline void set_work(GraphInstance& instance, std::uint32_t node, const Ref<Works>& works) {
  instance.set(node, works->of.front()->what);
}

}  // namespace anabranch::python
