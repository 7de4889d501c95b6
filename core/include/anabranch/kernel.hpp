#pragma once

// Compiled kernels, and what a launch of one says. A backend implements, for its device:
//
// - `Backend::load_library`: a `Library`, one per image and device; on CUDA a CUlibrary, or a CUmodule of the primary
//   context.
// - `Library::find`: a `Kernel`, which holds a reference to its library; on CUDA it also holds the CUfunction.
// - `Kernel::attributes` and the like: what the driver says of the function.
// - `Backend::launch`: an index space, for which the backend chooses the grid (see `LaunchShape`).
// - `Backend::launch_grid`: a grid that the caller chose (see `LaunchGrid`).
//
// Where a device loads no images (the CPU, whose kernels are functions of this process) `load_library` and
// `launch_grid` throw Error(device).

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "anabranch/ref.hpp"

namespace anabranch {

// Where a parameter lies in a kernel's parameter space, in bytes.
struct ParameterPlace {
  std::size_t offset = 0;
  std::size_t size = 0;
};

// What the driver says of a kernel; sizes in bytes.
struct KernelAttributes {
  int registers = 0;              // per thread
  int max_threads = 0;            // in one block of it
  std::size_t shared_memory = 0;  // static, per block
  std::size_t local_memory = 0;   // per thread
  std::size_t constant_memory = 0;
  std::size_t max_shared_memory = 0;  // static and dynamic together, with the opt-in beyond 48 KiB
  int binary_version = 0;             // 90 for sm_90
};

// A place in a kernel's source at which it may fail, for messages.
struct KernelPlace {
  std::string where;  // the source line, as tracebacks show it
  std::string what;   // what goes wrong there; empty if an index is out of bounds
  std::string array;  // which array is indexed, as messages name it; empty if that is not known
  int slot = -1;      // of a parameter: where a launch packs it, the pointer first and then its shape
  int ndim = 0;
};

// A launch of a kernel that may fail has the site that enqueued it in its last slots: `Site::code`,
// `Site::instruction`.
inline constexpr std::size_t launch_site_slots = 2;

// A compiled kernel. `code` is the entry for its device; on the CPU
//   int64_t (int64_t begin, int64_t end, const int64_t* dims, const void* arguments)
// runs the indices [begin, end) of the flattened, row-major index space, and returns `end`, or the first index that
// failed, after which it has run none; `anabranch_fault` (fault.hpp) was then called. On CUDA it is a CUfunction. Lives
// until its last launch has run.
class Kernel : public RefCounted {
 public:
  Kernel(void* code, std::string name, std::vector<KernelPlace> places = {})
      : code(code), name(std::move(name)), places(std::move(places)) {}
  void* const code;
  const std::string name;
  const std::vector<KernelPlace> places;
  bool may_fail() const noexcept { return !places.empty(); }

  virtual KernelAttributes attributes() { return {}; }
  // In order; empty where the device cannot tell (drivers before CUDA 12.4).
  virtual std::vector<ParameterPlace> parameters() { return {}; }
  // How many blocks of so many threads and so many bytes of dynamic shared memory one multiprocessor runs at a time.
  virtual int resident_blocks(int threads, std::size_t shared_memory) {
    (void)threads, (void)shared_memory;
    return 0;
  }
};

// How a symbol takes what a launch has for it.
struct KernelForm {
  // At which 8-byte slot of a launch's arguments each parameter starts, one entry per parameter of the symbol (those
  // for the index space of `launch` left out); a parameter's value lies there as it is in parameter space, so that
  // &arguments[slots[i]] is the pointer that the driver wants. `record_slot`, last: the address of the launch's record.
  std::vector<std::uint32_t> slots;
  std::vector<KernelPlace> places = {};
  bool wide = false;    // a launch over an index space has a grid of one dimension, see `LaunchShape`
  bool across = false;  // accesses move across rows as the last index grows, so that narrow blocks serve best
  // Behind the sizes of the index space it has one more parameter, an int64: how many indices each thread runs, a block
  // apart, along y, or along x if the index space has one axis.
  bool coarse = false;

  static constexpr std::uint32_t record_slot = 0xFFFFFFFF;
};

// Code loaded for one device.
class Library : public RefCounted {
 public:
  // The kernel of that symbol. `name` is the one for messages. Throws Error(value) if there is no such symbol.
  virtual Ref<Kernel> find(const std::string& symbol, std::string name, KernelForm form) = 0;
};

// A launch over an index space: each index once, row-major. On a device of blocks the kernel's first `ndim` parameters
// are the sizes, as int64 (&dims[0] and so on), its other parameters as `Library::find` was told. A thread runs one
// index, or several of a coarse kernel; the grid is that of `grid`, or, for a wide kernel, of one dimension, in which
// the indices are counted.
struct LaunchShape {
  int ndim = 1;
  std::int64_t dims[4] = {0, 1, 1, 1};
  int block = 0;  // threads per block; 0: the device's choice (256, less where the kernel's registers allow less)
  std::int64_t size() const noexcept { return dims[0] * dims[1] * dims[2] * dims[3]; }
  // The indices along x, y and z: the last axis, the one before it, and the first, or the first two of four counted
  // together.
  std::array<std::int64_t, 3> extents() const noexcept {
    switch (ndim) {
      case 1:
        return {dims[0], 1, 1};
      case 2:
        return {dims[1], dims[0], 1};
      case 3:
        return {dims[2], dims[1], dims[0]};
      default:
        return {dims[3], dims[2], dims[0] * dims[1]};
    }
  }
  // How many blocks along x, y and z cover it, of at most so many threads in all, and how many threads each has along
  // them. Blocks are wide, so that neighbours in memory are neighbours in a warp, but for kernels that move across
  // rows. With `count`, each thread runs so many indices along y, or along x if there is one axis.
  std::array<std::int64_t, 6> grid(int threads, bool across, std::int64_t count = 1) const noexcept;
  // Whether such a grid of 256 threads, or `block`, is one that devices have, and 32 bits count along each axis.
  bool fits_grid() const noexcept;
};

// A launch of exactly these blocks, for kernels that compute their own index. Dynamic shared memory above 48 KiB is
// opted in to.
struct LaunchGrid {
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t cluster[3] = {0, 0, 0};  // blocks per cluster; 0: none
  std::uint32_t shared_memory = 0;       // dynamic, bytes
  bool cooperative = false;              // all blocks run at the same time, and may wait for each other
};

}  // namespace anabranch
