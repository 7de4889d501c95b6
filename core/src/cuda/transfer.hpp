#pragma once

#include <atomic>
#include <mutex>

#include "anabranch/layout.hpp"
#include "driver.hpp"
#include "primitive.hpp"

namespace anabranch::cuda {

class CudaBackend;

// Copies and fills on a device, of any layout. Memory may be this device's, another's that it can reach, or pinned.
// Contiguous elements go through the driver's copies and memsets, others through kernels of ours, which are loaded when
// first needed. So do, in a stream, contiguous copies within the device's own memory and large fills: the driver's
// would slow queries (see `CudaBackend::slow_queries`), and take as long on the device and longer on the host.
class Transfer {
 public:
  explicit Transfer(CudaBackend& device) : device_(device) {}

  // The context is current. Throws DriverError.
  void copy(CUstream stream, const Elements& dst, const Elements& src, std::int64_t count);
  void fill(CUstream stream, const Elements& dst, const void* value, std::int64_t count);
  // The same as nodes of a graph.
  void copy(Primitives& nodes, const Elements& dst, const Elements& src, std::int64_t count);
  void fill(Primitives& nodes, const Elements& dst, const void* value, std::int64_t count);

  // For a stream: whether the kernel for runs of bytes was put in. Not if an address is no multiple of 16.
  bool copy_run(CUstream stream, CUdeviceptr to, CUdeviceptr from, std::size_t bytes);
  bool fill_run(CUstream stream, CUdeviceptr to, unsigned value, unsigned itemsize, std::size_t count);

 private:
  static constexpr int sizes = 5;  // elements of 1, 2, 4, 8 and 16 bytes
  void load();
  void load_run();
  void launch_run(CUstream stream, CUfunction function, std::size_t bytes, void** parameters);
  template <class Sink>
  void plan_copy(Sink& sink, const Elements& dst, const Elements& src, std::int64_t count);
  // Of elements that do not lie one after the other. Apart from the others, whose frame is small.
  template <class Sink>
  void plan_gather(Sink& sink, const Elements& dst, const Elements& src, std::int64_t count);
  template <class Sink>
  void plan_fill(Sink& sink, const Elements& dst, const void* value, std::int64_t count);

  CudaBackend& device_;
  std::once_flag loaded_;
  std::once_flag run_loaded_;
  CUfunction copy_[sizes] = {};
  CUfunction fill_[sizes] = {};
  CUfunction copy_run_ = nullptr;
  CUfunction fill_run_ = nullptr;
};

}  // namespace anabranch::cuda
