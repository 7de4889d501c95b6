#pragma once

#include <atomic>
#include <mutex>

#include "anabranch/layout.hpp"
#include "driver.hpp"
#include "primitive.hpp"

namespace anabranch::cuda {

class CudaBackend;

// Copies and fills on a device, of any layout. Memory may be this device's, another's that it can reach, or pinned.
// Contiguous elements go through the copy engines, others through kernels of ours, which are loaded when first needed.
class Transfer {
 public:
  explicit Transfer(CudaBackend& device) : device_(device) {}

  // The context is current. Throws DriverError.
  void copy(CUstream stream, const Elements& dst, const Elements& src, std::int64_t count);
  void fill(CUstream stream, const Elements& dst, const void* value, std::int64_t count);
  // The same as nodes of a graph.
  void copy(Primitives& nodes, const Elements& dst, const Elements& src, std::int64_t count);
  void fill(Primitives& nodes, const Elements& dst, const void* value, std::int64_t count);

 private:
  static constexpr int sizes = 5;  // elements of 1, 2, 4, 8 and 16 bytes
  void load();
  template <class Sink>
  void plan_copy(Sink& sink, const Elements& dst, const Elements& src, std::int64_t count);
  // Of elements that do not lie one after the other. Apart from the others, whose frame is small.
  template <class Sink>
  void plan_gather(Sink& sink, const Elements& dst, const Elements& src, std::int64_t count);
  template <class Sink>
  void plan_fill(Sink& sink, const Elements& dst, const void* value, std::int64_t count);

  CudaBackend& device_;
  std::once_flag loaded_;
  CUfunction copy_[sizes] = {};
  CUfunction fill_[sizes] = {};
};

}  // namespace anabranch::cuda
