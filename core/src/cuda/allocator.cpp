#include "anabranch/memory/allocator.hpp"

#include <string>

#include "anabranch/runtime.hpp"
#include "backend.hpp"

namespace {

using namespace anabranch;

cuda::CudaBackend& find_gpu(int index) {
  for (Backend* device : devices()) {
    auto* gpu = dynamic_cast<cuda::CudaBackend*>(device);
    if (gpu && gpu->capabilities().index == index) return *gpu;
  }
  throw Error(ErrorKind::device, "there is no device cuda:" + std::to_string(index));
}

CUstream as_stream(void* stream) noexcept { return stream ? static_cast<CUstream>(stream) : CU_STREAM_LEGACY; }

}  // namespace

void* anabranch_allocate(ssize_t bytes, int device, void* stream) {
  if (bytes <= 0) return nullptr;
  cuda::CudaBackend& gpu = find_gpu(device);
  gpu.open();
  return reinterpret_cast<void*>(gpu.memory().allocate_on(as_stream(stream), static_cast<std::size_t>(bytes)));
}

void anabranch_free(void* pointer, ssize_t, int device, void* stream) noexcept {
  if (!pointer || forked()) return;
  try {
    find_gpu(device).memory().free_on(as_stream(stream), reinterpret_cast<CUdeviceptr>(pointer));
  } catch (const Error&) {
    return;  // no such device, so no such memory
  }
}
