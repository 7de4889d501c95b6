#pragma once

#include <cudaTypedefs.h>

#include <string>

#include "anabranch/error.hpp"

namespace anabranch::cuda {

// The driver's functions in use, each with the version of its signature. All are looked up as of CUDA 12.0, which every
// later driver still offers, so one build serves all.
#define ANABRANCH_DRIVER_FUNCTIONS(F)                  \
  F(cuInit, 2000)                                      \
  F(cuGetErrorName, 6000)                              \
  F(cuGetErrorString, 6000)                            \
  F(cuDriverGetVersion, 2020)                          \
  F(cuDeviceGet, 2000)                                 \
  F(cuDeviceGetCount, 2000)                            \
  F(cuDeviceGetName, 2000)                             \
  F(cuDeviceTotalMem, 3020)                            \
  F(cuDeviceGetAttribute, 2000)                        \
  F(cuDeviceCanAccessPeer, 4000)                       \
  F(cuDevicePrimaryCtxRetain, 7000)                    \
  F(cuCtxGetCurrent, 4000)                             \
  F(cuCtxSetCurrent, 4000)                             \
  F(cuCtxSynchronize, 2000)                            \
  F(cuMemGetInfo, 3020)                                \
  F(cuStreamCreateWithPriority, 5050)                  \
  F(cuStreamDestroy, 4000)                             \
  F(cuStreamQuery, 2000)                               \
  F(cuStreamSynchronize, 2000)                         \
  F(cuStreamWaitEvent, 3020)                           \
  F(cuStreamGetPriority, 5050)                         \
  F(cuStreamGetFlags, 5050)                            \
  F(cuStreamGetCtx, 9020)                              \
  F(cuStreamBeginCapture, 10010)                       \
  F(cuStreamEndCapture, 10000)                         \
  F(cuEventCreate, 2000)                               \
  F(cuEventDestroy, 4000)                              \
  F(cuEventRecord, 2000)                               \
  F(cuEventQuery, 2000)                                \
  F(cuEventSynchronize, 2000)                          \
  F(cuEventElapsedTime, 2000)                          \
  F(cuMemPoolCreate, 11020)                            \
  F(cuMemPoolSetAttribute, 11020)                      \
  F(cuMemPoolGetAttribute, 11020)                      \
  F(cuMemPoolSetAccess, 11020)                         \
  F(cuMemPoolTrimTo, 11020)                            \
  F(cuMemAllocFromPoolAsync, 11020)                    \
  F(cuMemFreeAsync, 11020)                             \
  F(cuPointerGetAttributes, 7000)                      \
  F(cuMemHostAlloc, 2020)                              \
  F(cuMemFreeHost, 2000)                               \
  F(cuMemcpyAsync, 4000)                               \
  F(cuMemcpy2DAsync, 3020)                             \
  F(cuMemsetD8Async, 3020)                             \
  F(cuMemsetD16Async, 3020)                            \
  F(cuMemsetD32Async, 3020)                            \
  F(cuModuleLoadDataEx, 2010)                          \
  F(cuModuleUnload, 2000)                              \
  F(cuModuleGetFunction, 2000)                         \
  F(cuFuncGetAttribute, 2020)                          \
  F(cuFuncSetAttribute, 9000)                          \
  F(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050) \
  F(cuLaunchKernel, 4000)                              \
  F(cuLaunchKernelEx, 11060)                           \
  F(cuGraphCreate, 10000)                              \
  F(cuGraphDestroy, 10000)                             \
  F(cuGraphAddKernelNode, 12000)                       \
  F(cuGraphAddMemcpyNode, 10000)                       \
  F(cuGraphAddMemsetNode, 10000)                       \
  F(cuGraphAddEmptyNode, 10000)                        \
  F(cuGraphAddChildGraphNode, 10000)                   \
  F(cuGraphKernelNodeSetAttribute, 11000)              \
  F(cuGraphInstantiateWithFlags, 11040)                \
  F(cuGraphUpload, 11010)                              \
  F(cuGraphLaunch, 10000)                              \
  F(cuGraphExecKernelNodeSetParams, 12000)             \
  F(cuGraphExecMemcpyNodeSetParams, 10020)             \
  F(cuGraphExecMemsetNodeSetParams, 10020)             \
  F(cuGraphExecDestroy, 10000)

// Newer functions, each with its first CUDA version; null if the driver lacks it.
#define ANABRANCH_DRIVER_OPTIONS(F) \
  F(cuFuncGetParamInfo, 12040)      \
  F(cuGraphAddNode, 12030)          \
  F(cuGraphConditionalHandleCreate, 12030)

struct Driver {
#define ANABRANCH_MEMBER(name, version) PFN_##name##_v##version name = nullptr;
  ANABRANCH_DRIVER_FUNCTIONS(ANABRANCH_MEMBER)
  ANABRANCH_DRIVER_OPTIONS(ANABRANCH_MEMBER)
#undef ANABRANCH_MEMBER
  int version = 0;  // 12040 for CUDA 12.4
};

// The CUDA installation of this machine.
struct Installation {
  Driver driver;
  int devices = 0;
  std::string missing;  // why there are no devices, and what to do
};

// Opens the driver at the first call. A missing or outdated driver throws nothing; there are no devices then.
const Installation& installation();
// Requires that `installation` has found a device.
extern const Driver* driver;

// The driver's name and text of an error.
std::string error_name(CUresult code);
DriverError driver_error(CUresult code, const char* what);
// Whether every call on the context fails after this error.
bool is_sticky(CUresult code) noexcept;

// Whether the program runs under compute-sanitizer, as ANABRANCH_CUDA_SANITIZER=1 says; read once. The tool does not
// recognise two kinds of order: that an event was found completed, and that a stream was created after the host had
// waited. The driver then waits once more.
bool under_sanitizer() noexcept;

// Like the driver's own query.
inline CUresult query(CUevent event) noexcept {
  const CUresult status = driver->cuEventQuery(event);
  return status == CUDA_SUCCESS && under_sanitizer() ? driver->cuEventSynchronize(event) : status;
}

// Likewise; returns an error if either event is not completed.
inline CUresult elapsed(float& milliseconds, CUevent begin, CUevent end) noexcept {
  const CUresult status = driver->cuEventElapsedTime(&milliseconds, begin, end);
  if (status != CUDA_SUCCESS || !under_sanitizer()) return status;
  driver->cuEventSynchronize(begin);
  return driver->cuEventSynchronize(end);
}

// Makes a context current on this thread until the end of the scope, unless it already is. Then restores the previous
// context, if any. Otherwise the context stays current, as with CUDA's runtime, so that a thread that makes only our
// calls pays for it once. Null: the right context is already current.
class ContextScope {
 public:
  explicit ContextScope(CUcontext context) noexcept {
    if (!context) return;
    if (driver->cuCtxGetCurrent(&before_) == CUDA_SUCCESS && before_ == context) return;
    changed_ = driver->cuCtxSetCurrent(context) == CUDA_SUCCESS && before_;
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  // Runs on the thread of the constructor, under any lock: the current context belongs to the thread.
  ~ContextScope() {
    if (changed_) driver->cuCtxSetCurrent(before_);
  }

 private:
  CUcontext before_ = nullptr;
  bool changed_ = false;
};

}  // namespace anabranch::cuda
