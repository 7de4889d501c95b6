// Graphs made by hand, for the tests of this folder.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cuda/graph.hpp"
#include "device.hpp"

namespace anabranch::cuda {

using Ints = std::vector<std::int32_t>;

// Numbers of a device, and of the host's to look at them.
class Numbers {
 public:
  Numbers(CudaBackend& device, Stream& stream, std::size_t count) : pair_(device, stream, 4 * count) {
    for (std::size_t i = 0; i < count; ++i) host()[i] = 0;
    check::finish(stream, pair_.upload(stream));
  }
  std::int32_t* at(std::size_t index) const {
    return static_cast<std::int32_t*>(static_cast<void*>(pair_.memory->pointer())) + index;
  }
  void set(Stream& stream, const Ints& values) {
    std::copy(values.begin(), values.end(), host());
    check::finish(stream, pair_.upload(stream));
  }
  Ints read(Stream& stream) {
    check::finish(stream, pair_.download(stream));
    return {host(), host() + pair_.size / 4};
  }
  std::int32_t* host() const { return static_cast<std::int32_t*>(static_cast<void*>(pair_.host->pointer())); }

 private:
  Pair pair_;
};

// A kernel that adds to a number, `all` to many.
inline Ref<Kernel> add_kernel(CudaBackend& device, bool all = false) {
  static constexpr char ptx[] = R"(
.version 7.0
.target sm_50
.address_size 64
.visible .entry add(.param .u64 add_to, .param .u32 add_value)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [add_to];
  ld.param.u32 %r1, [add_value];
  cvta.to.global.u64 %rd2, %rd1;
  ld.global.u32 %r2, [%rd2];
  add.s32 %r3, %r2, %r1;
  st.global.u32 [%rd2], %r3;
  ret;
}
.visible .entry add_all(.param .u64 all_count, .param .u64 all_to, .param .u32 all_value)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [all_count];
  ld.param.u64 %rd2, [all_to];
  ld.param.u32 %r1, [all_value];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  cvt.u64.u32 %rd3, %r5;
  setp.ge.s64 %p1, %rd3, %rd1;
  @%p1 ret;
  cvta.to.global.u64 %rd4, %rd2;
  shl.b64 %rd5, %rd3, 2;
  add.s64 %rd6, %rd4, %rd5;
  ld.global.u32 %r6, [%rd6];
  add.s32 %r7, %r6, %r1;
  st.global.u32 [%rd6], %r7;
  ret;
}
)";
  const Ref<Library> library = device.load_library(std::as_bytes(std::span(ptx)));
  const std::string name = all ? "add_all" : "add";
  return library->find(name, name, {{0, 1}});
}

inline std::uint64_t slot(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }
inline std::uint64_t slot(std::int32_t value) { return static_cast<std::uint32_t>(value); }

inline Ref<Work> add_work(const Ref<Kernel>& kernel, std::int32_t* to, std::int32_t value) {
  return make_ref<Work>(KernelWork{kernel, LaunchGrid{}, {slot(to), slot(value)}});
}

inline Ref<Work> add_all_work(const Ref<Kernel>& kernel, std::int32_t* to, std::int64_t count, std::int32_t value) {
  return make_ref<Work>(KernelWork{kernel, LaunchShape{1, {count, 1, 1, 1}}, {slot(to), slot(value)}});
}

inline Elements numbers(std::int32_t* pointer, std::int64_t count, std::int64_t step = 1) {
  const std::int64_t shape[] = {count};
  Layout layout = row_major(1, shape, 4);
  layout.strides[0] = 4 * step;
  return {static_cast<std::byte*>(static_cast<void*>(pointer)), layout};
}

inline Ref<Work> fill_work(const Elements& dst, std::int32_t value, std::int64_t count) {
  FillWork fill{dst, {}, count};
  std::memcpy(fill.value, &value, sizeof value);
  return make_ref<Work>(fill);
}

inline Ref<Work> copy_work(const Elements& dst, const Elements& src, std::int64_t count) {
  return make_ref<Work>(CopyWork{dst, src, count});
}

// A graph that grows by a node at a time, and what its nodes run.
struct Recording {
  explicit Recording(CudaBackend& device) : device(device) { graph->home = &device; }

  std::uint32_t add(NodeKind kind, Ref<Work> work, std::vector<std::uint32_t> after, CudaBackend* where = nullptr) {
    GraphNode& node = graph->nodes.emplace_back();
    node.kind = kind;
    node.device = where ? where : &device;
    node.after = std::move(after);
    works->of.push_back(std::move(work));
    return static_cast<std::uint32_t>(graph->nodes.size() - 1);
  }
  // After the last one, if there is one.
  std::uint32_t add(NodeKind kind, Ref<Work> work) {
    std::vector<std::uint32_t> after;
    if (!graph->nodes.empty()) after.push_back(static_cast<std::uint32_t>(graph->nodes.size() - 1));
    return add(kind, std::move(work), std::move(after));
  }
  Ref<CudaExecutable> make() const {
    Ref<Executable> made = device.instantiate(graph, works);
    CHECK(made);
    return Ref<CudaExecutable>::take(static_cast<CudaExecutable*>(made.leak()));
  }
  // The works with others for some nodes.
  Ref<Works> with(const std::vector<std::pair<std::uint32_t, Ref<Work>>>& changes) const {
    auto changed = make_ref<Works>();
    changed->of = works->of;
    for (const auto& [node, work] : changes) changed->of[node] = work;
    return changed;
  }

  CudaBackend& device;
  Ref<Graph> graph = make_ref<Graph>();
  Ref<Works> works = make_ref<Works>();
};

inline NestedWork nested(const Recording& body, const std::int32_t* flag = nullptr,
                         const Recording* otherwise = nullptr) {
  NestedWork work{flag, body.graph, body.works};
  if (otherwise) {
    work.otherwise = otherwise->graph;
    work.otherwise_works = otherwise->works;
  }
  return work;
}

// In place of one of the driver's functions, while it lives.
template <class Function>
class Instead {
 public:
  Instead(Function Driver::* which, Function other) : which_(which), before_(table().*which) { table().*which = other; }
  Instead(const Instead&) = delete;
  Instead& operator=(const Instead&) = delete;
  ~Instead() { table().*which_ = before_; }

 private:
  static Driver& table() { return const_cast<Driver&>(*driver); }
  Function Driver::* which_;
  Function before_;
};

}  // namespace anabranch::cuda
