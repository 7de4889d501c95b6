#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "anabranch/graph/graph.hpp"

// The parts of a captured call's graph that depend on the arguments of a call.
namespace anabranch::python {

// An address relative to the first element of an argument.
struct Pointer {
  std::uint32_t argument = 0;
  std::int64_t offset = 0;
  std::byte* of(std::span<std::byte* const> arguments) const { return arguments[argument] + offset; }
};

class Patches;

// The parts of one node that depend on the arguments.
struct NodePatch {
  struct Slot {
    std::uint32_t slot = 0;
    Pointer pointer = {};
  };
  struct Number {
    std::uint32_t slot = 0;
    std::uint32_t words = 1;
    std::size_t first = 0;  // among the numbers of a call
  };
  std::uint32_t node = 0;
  std::vector<Slot> slots = {};
  std::vector<Number> numbers = {};
  // Of copies and fills, and of a branch or loop its flag.
  bool has_dst = false;
  bool has_src = false;
  Pointer dst = {};
  Pointer src = {};
  Ref<Patches> body = nullptr;
  Ref<Patches> otherwise = nullptr;
};

class Patches final : public RefCounted {
 public:
  std::vector<NodePatch> nodes;

  // Makes works those of a call.
  void apply(Change& works, std::span<std::byte* const> arguments, std::span<const std::uint64_t> numbers) const {
    const Call call{arguments, numbers};
    for (const NodePatch& patch : nodes) {
      std::visit([&](const auto& what) { call.apply(works, patch, what); }, works.now().of[patch.node]->what);
    }
  }

 private:
  struct Call {
    std::span<std::byte* const> arguments;
    std::span<const std::uint64_t> numbers;

    std::uint64_t slot(const Pointer& pointer) const { return reinterpret_cast<std::uintptr_t>(pointer.of(arguments)); }

    // `what` is what the node runs by now. It may be gone once the works were changed.
    void apply(Change& works, const NodePatch& patch, const KernelWork& kernel) const {
      bool same = true;
      for (const auto& one : patch.slots) same = same && kernel.arguments[one.slot] == slot(one.pointer);
      for (const auto& one : patch.numbers) {
        same =
            same && std::memcmp(&kernel.arguments[one.slot], &numbers[one.first], one.words * sizeof(numbers[0])) == 0;
      }
      if (same) return;
      LaunchArguments& changed = std::get<KernelWork>(works.what(patch.node)).arguments;
      for (const auto& one : patch.slots) changed[one.slot] = slot(one.pointer);
      for (const auto& one : patch.numbers) {
        std::memcpy(&changed[one.slot], &numbers[one.first], one.words * sizeof(numbers[0]));
      }
    }
    void apply(Change& works, const NodePatch& patch, const Boxed<CopyWork>& box) const {
      const CopyWork& copy = *box;
      CopyWork changed = copy;
      if (patch.has_dst) changed.dst.pointer = patch.dst.of(arguments);
      if (patch.has_src) changed.src.pointer = patch.src.of(arguments);
      const bool same = changed.dst.pointer == copy.dst.pointer && changed.src.pointer == copy.src.pointer;
      if (!same) *std::get<Boxed<CopyWork>>(works.what(patch.node)) = changed;
    }
    void apply(Change& works, const NodePatch& patch, const Boxed<FillWork>& box) const {
      const FillWork& fill = *box;
      FillWork changed = fill;
      if (patch.has_dst) changed.dst.pointer = patch.dst.of(arguments);
      for (const auto& one : patch.numbers) std::memcpy(changed.value, &numbers[one.first], sizeof(changed.value));
      const bool same = changed.dst.pointer == fill.dst.pointer &&
                        std::memcmp(changed.value, fill.value, static_cast<std::size_t>(fill.dst.layout.itemsize)) == 0;
      if (!same) *std::get<Boxed<FillWork>>(works.what(patch.node)) = changed;
    }
    void apply(Change& works, const NodePatch& patch, const NestedWork& nested) const {
      NestedWork changed = nested;
      if (patch.has_src) changed.flag = reinterpret_cast<const std::int32_t*>(patch.src.of(arguments));
      bool same = changed.flag == nested.flag;
      same = !within(patch.body, changed.works) && same;
      same = !within(patch.otherwise, changed.otherwise_works) && same;
      if (!same) works.what(patch.node) = std::move(changed);
    }
    bool within(const Ref<Patches>& patches, Ref<Works>& works) const {
      Change changes(works);
      if (patches) patches->apply(changes, arguments, numbers);
      return changes.begun();
    }
    template <class What>
    void apply(Change&, const NodePatch&, const What&) const {}
  };
};

inline Ref<Patches> make_patches() { return make_ref<Patches>(); }
inline Point launch_call(GraphInstance& instance, Stream& stream, Ref<RefCounted> context, const Patches& patches,
                         std::byte* const* arguments, std::size_t count, const std::uint64_t* numbers,
                         std::size_t words) {
  return instance.launch(stream, std::move(context),
                         [&](Change& works) { patches.apply(works, {arguments, count}, {numbers, words}); });
}

inline Storage* storage_of(const NodeTouch& touch) { return touch.storage; }
inline std::uint32_t node_of(const NodeTouch& touch) { return touch.node; }
inline bool is_write(const NodeTouch& touch) { return writes(touch.access); }
// Where copies and fills have their elements; null for other work.
inline std::byte* destination(const Works& works, std::uint32_t node) {
  const Work& work = *works.of[node];
  if (const CopyWork* copy = work.copy()) return copy->dst.pointer;
  if (const FillWork* fill = work.fill()) return fill->dst.pointer;
  return nullptr;
}
inline std::byte* source(const Works& works, std::uint32_t node) {
  const CopyWork* copy = works.of[node]->copy();
  return copy ? copy->src.pointer : nullptr;
}

}  // namespace anabranch::python
