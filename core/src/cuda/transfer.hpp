#pragma once

#include <atomic>
#include <mutex>

#include "anabranch/memory/layout.hpp"
#include "driver.hpp"
#include "memory/tiling.hpp"
#include "primitive.hpp"

namespace anabranch::cuda {

class CudaBackend;

// Copies and fills on a device, with any layout. Memory may be this device's, another's that it can access, or pinned.
// Contiguous elements use the driver's copies and memsets; other elements use our kernels, which are loaded at first
// use, unlike those for contiguous memory. In a stream, our kernels also do contiguous copies within the device's own
// memory and large fills, because the driver's slow down queries (see `CudaBackend::slow_queries`), take as long on the
// device, and take longer on the host.
class Transfer {
 public:
  explicit Transfer(CudaBackend& device) : device_(device) {}

  // Loads the kernels for runs of bytes, in the device's context, which is current. Not later: a driver may load code
  // only once the kernels that are running have ended, and a copy must not wait for those. Throws DriverError.
  void open();

  // Require that the context is current. Throw DriverError.
  void copy(CUstream stream, const Elements& dst, const Elements& src, std::int64_t count);
  void fill(CUstream stream, const Elements& dst, const void* value, std::int64_t count);
  // The same as nodes of a graph.
  void copy(Primitives& nodes, const Elements& dst, const Elements& src, std::int64_t count);
  void fill(Primitives& nodes, const Elements& dst, const void* value, std::int64_t count);

  // Enqueue the kernel for runs of bytes. Return false, without it, if an address is no multiple of 16.
  bool copy_run(CUstream stream, CUdeviceptr to, CUdeviceptr from, std::size_t bytes);
  bool fill_run(CUstream stream, CUdeviceptr to, unsigned value, unsigned itemsize, std::size_t count);

 private:
  static constexpr int sizes = 5;  // elements of 1, 2, 4, 8 and 16 bytes
  void load();
  void load_conversion();
  void launch_run(CUstream stream, CUfunction function, std::size_t bytes, void** parameters);
  template <class Sink>
  void plan_copy(Sink& sink, const Elements& dst, const Elements& src, std::int64_t count);
  // For elements that are not adjacent. Separate, to keep the stack frame of `plan_copy` small.
  template <class Sink>
  void plan_gather(Sink& sink, const Elements& dst, const Elements& src, std::int64_t count);
  // In tiles, where adjacent elements lie along different axes.
  template <class Sink>
  void plan_tiles(Sink& sink, const Elements& dst, const Elements& src, const Tiling& tiling);
  // For elements of two types.
  template <class Sink>
  void plan_conversion(Sink& sink, const Elements& dst, const Elements& src, std::int64_t count);
  template <class Sink>
  void plan_fill(Sink& sink, const Elements& dst, const void* value, std::int64_t count);

  CudaBackend& device_;
  std::once_flag loaded_;
  std::once_flag conversion_loaded_;
  CUfunction copy_[sizes] = {};
  CUfunction fill_[sizes] = {};
  CUfunction tiles_[sizes] = {};
  CUfunction copy_rows_ = nullptr;
  CUfunction convert_ = nullptr;
  CUfunction copy_run_ = nullptr;
  CUfunction fill_run_ = nullptr;
};

}  // namespace anabranch::cuda
