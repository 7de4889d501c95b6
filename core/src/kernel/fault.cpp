#include "anabranch/kernel/fault.hpp"

#include <utility>

#include "anabranch/kernel/kernel.hpp"

namespace anabranch {
namespace {

thread_local Fault current;

// The index as Python writes it: a tuple, or a plain number for one axis.
std::string index_text(const LaunchShape& shape, std::int64_t position) {
  if (shape.ndim == 1) return std::to_string(position);
  std::int64_t indices[4] = {};
  for (int axis = shape.ndim - 1; axis > 0; --axis) {
    indices[axis] = position % shape.dims[axis];
    position /= shape.dims[axis];
  }
  indices[0] = position;
  std::string text = "(";
  for (int axis = 0; axis < shape.ndim; ++axis) text += (axis ? ", " : "") + std::to_string(indices[axis]);
  return text + ")";
}

std::string shape_text(std::span<const std::uint64_t> sizes) {
  std::string text = "(";
  for (std::size_t axis = 0; axis < sizes.size(); ++axis)
    text += (axis ? ", " : "") + std::to_string(static_cast<std::int64_t>(sizes[axis]));
  return text + (sizes.size() == 1 ? ",)" : ")");
}

std::string bounds_text(const Fault& fault, const KernelPlace* place, std::span<const std::uint64_t> arguments) {
  std::string text = "index " + std::to_string(fault.index) + " is out of bounds for axis " +
                     std::to_string(fault.axis) + ", of size " + std::to_string(fault.size);
  if (!place || place->array.empty()) return text;
  text += ", of " + place->array;
  const auto slot = static_cast<std::size_t>(place->slot);
  const auto ndim = static_cast<std::size_t>(place->ndim);
  if (place->slot >= 0 && slot + 1 + ndim <= arguments.size())
    text += ", whose shape is " + shape_text(arguments.subspan(slot + 1, ndim));
  return text;
}

std::string message_of(const Kernel& kernel, const LaunchShape& shape, std::span<const std::uint64_t> arguments,
                       std::int64_t position, const Fault& fault) {
  const auto place = [&](std::int32_t number) {
    return number >= 0 && static_cast<std::size_t>(number) < kernel.places.size() ? &kernel.places[number] : nullptr;
  };
  const KernelPlace* where = place(fault.where);
  const KernelPlace* what = place(fault.what);
  std::string text = "kernel '" + kernel.name + "' failed at index " + index_text(shape, position);
  if (fault.axis >= 0) {
    text += ": " + bounds_text(fault, where, arguments);
  } else if (what && !what->what.empty()) {
    text += ": " + what->what;
  }
  if (where && !where->where.empty()) text += "\n" + where->where;
  return text;
}

}  // namespace

Fault take_fault() noexcept { return std::exchange(current, {}); }

Ref<Failure> kernel_failure(const Kernel& kernel, const LaunchShape& shape, std::span<const std::uint64_t> arguments,
                            std::int64_t position, const Fault& fault) noexcept {
  Site site;
  if (arguments.size() >= launch_site_slots) {
    const auto last = arguments.last(launch_site_slots);
    site = {static_cast<std::uintptr_t>(last[0]), static_cast<int>(last[1])};
  }
  const std::int64_t failed = fault.position >= 0 ? fault.position : position;
  return make_ref<Failure>(message_of(kernel, shape, arguments, failed, fault), site, fault.raised);
}

}  // namespace anabranch

void anabranch_fault(std::int64_t where, std::int64_t what, std::int64_t axis, std::int64_t index, std::int64_t size,
                     const char* raised, std::int64_t length) noexcept {
  anabranch::Fault& fault = anabranch::current;
  if (fault.where < 0) fault.where = static_cast<std::int32_t>(where);
  if (fault.what < 0) fault.what = static_cast<std::int32_t>(what);
  if (fault.axis < 0 && axis >= 0) {
    fault.axis = static_cast<std::int32_t>(axis);
    fault.index = index;
    fault.size = size;
  }
  if (raised && fault.raised.empty()) fault.raised.assign(raised, static_cast<std::size_t>(length));
}

void anabranch_failed_index(std::int64_t position) noexcept { anabranch::current.position = position; }
