#pragma once

// Compiled kernels and the descriptions of their launches. A backend implements, for its device:
//
// - `Backend::load_library`: a `Library`, one per image and device; on CUDA a CUlibrary, or a CUmodule of the primary
//   context.
// - `Library::find`: a `Kernel`, which holds a reference to its library; on CUDA also the CUfunction.
// - `Kernel::attributes` and the like: the driver's description of the function.
// - `Backend::launch`: a launch over an index space, for which the backend chooses the grid (see `LaunchShape`).
// - `Backend::launch_grid`: a launch over a grid that the caller chose (see `LaunchGrid`).
//
// Devices that load no images (the CPU, whose kernels are functions of this process) throw Error(device) from
// `load_library` and `launch_grid`.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "anabranch/ref.hpp"

namespace anabranch {

// A parameter's place in a kernel's parameter space, in bytes.
struct ParameterPlace {
  std::size_t offset = 0;
  std::size_t size = 0;
};

// The driver's description of a kernel; sizes in bytes.
struct KernelAttributes {
  int registers = 0;              // per thread
  int max_threads = 0;            // per block
  std::size_t shared_memory = 0;  // static, per block
  std::size_t local_memory = 0;   // per thread
  std::size_t constant_memory = 0;
  std::size_t max_shared_memory = 0;  // static plus dynamic, with the opt-in beyond 48 KiB
  int binary_version = 0;             // 90 for sm_90
};

// A place in a kernel's source at which it may fail, for error messages.
struct KernelPlace {
  std::string where;  // the source line, as tracebacks show it
  std::string what;   // what fails there; empty if an index is out of bounds
  std::string array;  // the name of the indexed array for messages; empty if unknown
  int slot = -1;  // the slot in which a launch packs the array's pointer, followed by its shape, if it is a parameter
  int ndim = 0;
};

// The indices per block along each axis, for a kernel whose indices share memory and wait for each other within blocks;
// all 0 for any other. A launch of such a kernel has as many axes as its blocks, and whole blocks along each.
using BlockSizes = std::array<std::int64_t, 3>;

// The number of slots at the end of the arguments of a kernel that may fail. They contain the site that enqueued the
// launch: `Site::code`, `Site::instruction`.
inline constexpr std::size_t launch_site_slots = 2;

// A compiled kernel. `code` is the entry for its device: a CUfunction on CUDA; on the CPU
//   int64_t (int64_t begin, int64_t end, const int64_t* dims, const void* arguments)
// which runs the indices [begin, end) of the flattened, row-major index space. It returns `end`, or the first index
// that failed, after calling `anabranch_fault` (fault.hpp); then it has run none of the later ones. If the kernel runs
// in blocks, it counts blocks instead of indices, and calls `anabranch_failed_index`, too. Lives until its last launch
// is completed.
class Kernel : public RefCounted {
 public:
  Kernel(void* code, std::string name, std::vector<KernelPlace> places = {}, const BlockSizes& block = {})
      : code(code), name(std::move(name)), places(std::move(places)), block(block) {}
  void* const code;
  const std::string name;
  const std::vector<KernelPlace> places;
  const BlockSizes block;
  bool may_fail() const noexcept { return !places.empty(); }
  bool in_blocks() const noexcept { return block[0] != 0; }

  virtual KernelAttributes attributes() { return {}; }
  // In order; empty where the device cannot list them (drivers before CUDA 12.4).
  virtual std::vector<ParameterPlace> parameters() { return {}; }
  // The number of blocks with that many threads, and bytes of dynamic shared memory, that one multiprocessor runs at a
  // time.
  virtual int resident_blocks(int threads, std::size_t shared_memory) {
    (void)threads, (void)shared_memory;
    return 0;
  }
};

// The way in which a symbol takes the arguments of a launch.
struct KernelForm {
  // The 8-byte slot of a launch's arguments at which each parameter of the symbol starts, without the parameters for
  // the index space of `launch`. The slot contains the parameter's value as in parameter space, so &arguments[slots[i]]
  // is the pointer that the driver needs. `record_slot`, last: the address of the launch's record.
  std::vector<std::uint32_t> slots;
  std::vector<KernelPlace> places = {};
  bool flat = false;    // launches over an index space use a grid of one dimension, see `LaunchShape`
  bool across = false;  // accesses move across rows as the last index grows, so narrow blocks are faster
  // The kernel has one more parameter after the sizes of the index space, an int64: the number of indices that each
  // thread runs, one block apart, along y, or along x if the index space has one axis.
  bool coarse = false;
  BlockSizes block = {};

  static constexpr std::uint32_t record_slot = 0xFFFFFFFF;
};

// Code loaded for one device.
class Library : public RefCounted {
 public:
  // The kernel with that symbol; messages use `name`. Throws Error(value) if there is no such symbol.
  virtual Ref<Kernel> find(const std::string& symbol, std::string name, KernelForm form) = 0;
};

// A launch over an index space, which runs each index once, in row-major order. On a device with blocks, the kernel's
// first `ndim` parameters are the sizes, as int64 (&dims[0] and so on); `KernelForm` describes the others. A thread
// runs one index, or several of a coarse kernel. `grid` gives the grid, except for a flat kernel, whose grid has one
// dimension along which the indices are counted.
struct LaunchShape {
  int ndim = 1;
  std::int64_t dims[4] = {0, 1, 1, 1};
  int block = 0;  // threads per block; 0: as `threads_per_block` says, less where the kernel's registers allow less
  std::int64_t size() const noexcept { return dims[0] * dims[1] * dims[2] * dims[3]; }
  // The indices along x, y and z: the last axis, the one before it, and the first axis. With four axes, z combines the
  // first two.
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
  // The blocks along x, y and z that cover the index space, followed by the threads per block along each; a block has
  // at most `threads` threads. Blocks are wide, so that neighbours in memory are neighbours in a warp, except for
  // kernels that move across rows. Each thread runs `count` indices along y, or along x if there is one axis.
  std::array<std::int64_t, 6> grid(int threads, bool across, std::int64_t count = 1) const noexcept;
  // The same for a kernel that runs in blocks of these sizes, of which the index space has a whole number.
  std::array<std::int64_t, 6> grid_of(const BlockSizes& block) const noexcept;
  // Whether 32-bit indices suffice along each axis of a grid.
  bool fits_axes() const noexcept;
  // Whether devices can run such a grid with blocks of 256 threads, or `block`, and 32-bit indices suffice along each
  // axis.
  bool fits_grid() const noexcept;
  // Whether 32-bit indices suffice along a grid of one dimension.
  bool fits_line() const noexcept;
  // Whether the threads of a device that runs so many at a time should run several indices each. `loops`: the kernel
  // has loops; those of a thread's indices run one after the other, which makes the last threads later. False for a
  // device that states no such number.
  bool is_large(std::int64_t resident_threads, bool loops) const noexcept {
    return resident_threads != 0 && size() >= (loops || ndim == 1 ? 4 : 2) * resident_threads;
  }
  // How many indices a thread of a coarse kernel runs on such a device: up to four, where that leaves most of its
  // threads something to do.
  std::int64_t indices_per_thread(std::int64_t resident_threads) const noexcept;
  // The threads per block that are best for a kernel that runs `count` indices per thread on such a device.
  int threads_per_block(std::int64_t resident_threads, std::int64_t count) const noexcept;
};

// A launch of exactly these blocks, for kernels that compute their own index. It opts in to dynamic shared memory above
// 48 KiB.
struct LaunchGrid {
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t cluster[3] = {0, 0, 0};  // blocks per cluster; 0: none
  std::uint32_t shared_memory = 0;       // dynamic, bytes
  bool cooperative = false;              // all blocks run at the same time and may wait for each other
};

}  // namespace anabranch
