// CPU devices and kernels for their tests.
#pragma once

#include <vector>

#include "check.hpp"
#include "cpu/backend.hpp"
#include "gate.hpp"

namespace anabranch::cpu {

// A device of its own for a test. Never destroyed, since its threads are never joined.
inline CpuBackend& make_device(int workers, std::size_t memory = std::size_t{1} << 30) {
  static auto* const all = new std::vector<CpuBackend*>;
  all->push_back(new CpuBackend(static_cast<int>(all->size()), workers, memory));
  return *all->back();
}

// A kernel that is a function of the indices [begin, end) and of one argument, which it gets as a pointer.
template <class T>
KernelWork kernel(std::int64_t size, void (*function)(std::int64_t begin, std::int64_t end, T& argument), T& argument) {
  struct Arguments {
    void (*function)(std::int64_t, std::int64_t, T&);
    T* argument;
  };
  const auto entry = [](std::int64_t begin, std::int64_t end, const std::int64_t*, const void* arguments) {
    const auto& both = *static_cast<const Arguments*>(arguments);
    both.function(begin, end, *both.argument);
    return end;
  };
  std::int64_t (*const code)(std::int64_t, std::int64_t, const std::int64_t*, const void*) = entry;
  return {make_ref<Kernel>(reinterpret_cast<void*>(code), "kernel"),
          LaunchShape{1, {size, 1, 1, 1}},
          {reinterpret_cast<std::uint64_t>(function), reinterpret_cast<std::uint64_t>(&argument)}};
}

// Launches it.
template <class T>
Point launch(Stream& stream, std::int64_t size, void (*function)(std::int64_t begin, std::int64_t end, T& argument),
             T& argument) {
  const KernelWork work = kernel<T>(size, function, argument);
  return stream.backend().launch(stream, *work.kernel, std::get<LaunchShape>(work.grid), work.arguments);
}

}  // namespace anabranch::cpu
