#include "kernel.hpp"

#include <algorithm>
#include <memory>

#include "anabranch/memory/memory.hpp"
#include "backend.hpp"

namespace anabranch::cuda {
namespace {

// The pointers to the parameters that the driver expects: on the stack, except for kernels with very many.
class Pointers {
 public:
  explicit Pointers(std::size_t count) : many_(count > few_.size() ? count : 0) {}
  void add(const void* pointer) noexcept { data()[count_++] = const_cast<void*>(pointer); }
  void** data() noexcept { return many_.empty() ? few_.data() : many_.data(); }

 private:
  std::array<void*, 64> few_;
  std::vector<void*> many_;
  std::size_t count_ = 0;
};

}  // namespace

CudaLibrary::CudaLibrary(CudaBackend& device, const void* image) : device_(device) {
  char log[8192] = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  const ContextScope scope(device.context());
  const CUresult status = driver->cuModuleLoadDataEx(&module_, image, 2, options, values);
  if (status == CUDA_SUCCESS) return;
  if (is_sticky(status)) device.check(status, "loading code");
  throw Error(ErrorKind::value,
              device.alias() + " cannot run this code: " + error_name(status) + (*log ? "\n" : "") + log);
}

// Runs on any thread, with neither the device's mutex nor a stream's held: it takes the device's mutex to list the
// streams. Does not block: the thread that completes the last of their work unloads the module.
CudaLibrary::~CudaLibrary() {
  if (!module_) return;
  std::vector<Use> uses;
  try {
    for (const Ref<Stream>& stream : device_.streams()) uses.push_back({stream, stream->issued()});
  } catch (const std::exception&) {
    return;  // stays loaded
  }
  struct Module {
    CudaBackend& device;
    CUmodule module;
  };
  after(
      std::move(uses),
      [](void* context) noexcept {
        const std::unique_ptr<Module> over(static_cast<Module*>(context));
        const ContextScope scope(over->device.context());
        driver->cuModuleUnload(over->module);
      },
      new Module{device_, module_});
}

Ref<Kernel> CudaLibrary::find(const std::string& symbol, std::string name, KernelForm form) {
  const ContextScope scope(device_.context());
  CUfunction function = nullptr;
  const CUresult status = driver->cuModuleGetFunction(&function, module_, symbol.c_str());
  if (status == CUDA_ERROR_NOT_FOUND) throw Error(ErrorKind::value, "the code has no kernel \"" + symbol + "\"");
  device_.check(status, "looking for a kernel");
  return make_ref<CudaKernel>(*this, function, std::move(name), std::move(form));
}

CudaKernel::CudaKernel(CudaLibrary& library, CUfunction function, std::string name, KernelForm form)
    : Kernel(function, std::move(name), std::move(form.places), form.block),
      library_(Ref<CudaLibrary>::share(&library)),
      slots_(std::move(form.slots)),
      flat_(form.flat),
      across_(form.across),
      coarse_(form.coarse) {
  if (!slots_.empty() && slots_.back() == KernelForm::record_slot) {
    takes_record_ = true;
    slots_.pop_back();
  }
  most_threads_ = std::max(1, attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
}

int CudaKernel::attribute(CUfunction_attribute which) const {
  const ContextScope scope(device().context());
  int value = 0;
  device().check(driver->cuFuncGetAttribute(&value, which, function()), "querying a kernel");
  return value;
}

KernelAttributes CudaKernel::attributes() {
  const auto bytes = [this](CUfunction_attribute which) { return static_cast<std::size_t>(attribute(which)); };
  KernelAttributes found;
  found.registers = attribute(CU_FUNC_ATTRIBUTE_NUM_REGS);
  found.max_threads = attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  found.shared_memory = bytes(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  found.local_memory = bytes(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  found.constant_memory = bytes(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
  found.max_shared_memory =
      static_cast<std::size_t>(device().attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  found.binary_version = attribute(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  return found;
}

std::vector<ParameterPlace> CudaKernel::parameters() {
  std::vector<ParameterPlace> places;
  if (!driver->cuFuncGetParamInfo) return places;
  const ContextScope scope(device().context());
  ParameterPlace place;
  while (driver->cuFuncGetParamInfo(function(), places.size(), &place.offset, &place.size) == CUDA_SUCCESS)
    places.push_back(place);
  return places;
}

int CudaKernel::resident_blocks(int threads, std::size_t shared_memory) {
  const ContextScope scope(device().context());
  int blocks = 0;
  device().check(driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function(), threads, shared_memory),
                 "querying a kernel");
  return blocks;
}

void CudaKernel::allow_shared_memory(std::uint32_t bytes) {
  if (bytes <= allowed_shared_memory_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(mutex_);
  if (bytes <= allowed_shared_memory_.load(std::memory_order_relaxed)) return;
  const ContextScope scope(device().context());
  device().check(
      driver->cuFuncSetAttribute(function(), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(bytes)),
      ("allowing kernel '" + name + "' " + std::to_string(bytes) + " bytes of shared memory").c_str());
  allowed_shared_memory_.store(bytes, std::memory_order_release);
}

template <class Submit>
void CudaKernel::prepare(const LaunchShape& shape, std::span<const std::uint64_t> arguments, CUdeviceptr record,
                         Submit&& submit) {
  const std::int64_t resident = device().capabilities().resident_threads;
  // If a thread may report an error, its place in the grid stands for the index.
  const std::int64_t count = coarse_ && !across_ && !takes_record_ ? shape.indices_per_thread(resident) : 1;
  const int threads = shape.block != 0 ? std::min(shape.block, 1024)
                                       : std::min(shape.threads_per_block(resident, count), most_threads_);
  Pointers pointers(static_cast<std::size_t>(shape.ndim) + slots_.size() + 2);
  for (int d = 0; d < shape.ndim; ++d) pointers.add(&shape.dims[d]);
  if (coarse_) pointers.add(&count);
  for (const std::uint32_t slot : slots_) pointers.add(&arguments[slot]);
  if (takes_record_) [[unlikely]]
    pointers.add(&record);
  CUDA_KERNEL_NODE_PARAMS node{};
  node.func = function();
  node.kernelParams = pointers.data();
  if (!in_blocks() && (shape.ndim == 1 || flat_)) {
    const std::int64_t each = count * threads;
    node.gridDimX = static_cast<unsigned>((shape.size() + each - 1) / each);
    node.gridDimY = node.gridDimZ = 1;
    node.blockDimX = static_cast<unsigned>(threads);
    node.blockDimY = node.blockDimZ = 1;
  } else {
    const auto grid = in_blocks() ? shape.grid_of(block) : shape.grid(threads, across_, count);
    node.gridDimX = static_cast<unsigned>(grid[0]);
    node.gridDimY = static_cast<unsigned>(grid[1]);
    node.gridDimZ = static_cast<unsigned>(grid[2]);
    node.blockDimX = static_cast<unsigned>(grid[3]);
    node.blockDimY = static_cast<unsigned>(grid[4]);
    node.blockDimZ = static_cast<unsigned>(grid[5]);
  }
  submit(node);
}

template <class Submit>
void CudaKernel::prepare(const LaunchGrid& grid, std::span<const std::uint64_t> arguments, Submit&& submit) {
  allow_shared_memory(grid.shared_memory);
  Pointers pointers(slots_.size());
  for (const std::uint32_t slot : slots_) pointers.add(&arguments[slot]);
  submit({function(), grid.grid[0], grid.grid[1], grid.grid[2], grid.block[0], grid.block[1], grid.block[2],
          grid.shared_memory, pointers.data(), nullptr, nullptr, nullptr});
}

void CudaKernel::check_launch(CUresult status) {
  if (status != CUDA_SUCCESS) [[unlikely]]
    device().check(status, ("launching kernel '" + name + "'").c_str());
}

void CudaKernel::launch(CUstream stream, const LaunchShape& shape, std::span<const std::uint64_t> arguments,
                        CUdeviceptr record) {
  prepare(shape, arguments, record, [&](const CUDA_KERNEL_NODE_PARAMS& kernel) {
    check_launch(driver->cuLaunchKernel(kernel.func, kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ,
                                        kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ, 0, stream,
                                        kernel.kernelParams, nullptr));
  });
}

void CudaKernel::launch(CUstream stream, const LaunchGrid& grid, std::span<const std::uint64_t> arguments) {
  prepare(grid, arguments, [&](const CUDA_KERNEL_NODE_PARAMS& kernel) {
    if (grid.cluster[0] == 0 && !grid.cooperative) [[likely]] {
      return check_launch(driver->cuLaunchKernel(kernel.func, kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ,
                                                 kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ,
                                                 kernel.sharedMemBytes, stream, kernel.kernelParams, nullptr));
    }
    CUlaunchAttribute attributes[2] = {};
    unsigned count = 0;
    if (grid.cluster[0] != 0) {
      attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
      attributes[count++].value.clusterDim = {grid.cluster[0], std::max(grid.cluster[1], 1U),
                                              std::max(grid.cluster[2], 1U)};
    }
    if (grid.cooperative) {
      attributes[count].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
      attributes[count++].value.cooperative = 1;
    }
    const CUlaunchConfig config{
        kernel.gridDimX,  kernel.gridDimY,       kernel.gridDimZ, kernel.blockDimX, kernel.blockDimY,
        kernel.blockDimZ, kernel.sharedMemBytes, stream,          attributes,       count};
    check_launch(driver->cuLaunchKernelEx(&config, kernel.func, kernel.kernelParams, nullptr));
  });
}

void CudaKernel::launch(Primitives& nodes, const LaunchShape& shape, std::span<const std::uint64_t> arguments) {
  if (shape.size() == 0) return;
  prepare(shape, arguments, 0, [&](const CUDA_KERNEL_NODE_PARAMS& kernel) { nodes.launch(kernel, {}); });
}

void CudaKernel::launch(Primitives& nodes, const LaunchGrid& grid, std::span<const std::uint64_t> arguments) {
  LaunchAttributes attributes{.cooperative = grid.cooperative};
  if (grid.cluster[0] != 0) {
    for (int d = 0; d < 3; ++d) attributes.cluster[d] = std::max(grid.cluster[d], 1U);
  }
  prepare(grid, arguments, [&](const CUDA_KERNEL_NODE_PARAMS& kernel) { nodes.launch(kernel, attributes); });
}

CudaKernel& kernel_of(CudaBackend& device, Kernel& kernel) {
  auto& own = static_cast<CudaKernel&>(kernel);
  if (&own.device() == &device) return own;
  throw Error(ErrorKind::device,
              "kernel '" + kernel.name + "' was loaded for " + own.device().alias() + ", not for " + device.alias());
}

}  // namespace anabranch::cuda
