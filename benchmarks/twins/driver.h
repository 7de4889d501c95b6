/* What the files of the C twins share: the driver's functions, opened at run time, and what driver.c makes of them. */
#pragma once

#include <cudaTypedefs.h>
#include <stddef.h>

/* The functions used, each with the version of its signature. */
/* clang-format off */
#define FUNCTIONS(F)                                                                                                 \
  F(cuInit, 2000) F(cuGetErrorName, 6000) F(cuDeviceGet, 2000) F(cuDevicePrimaryCtxRetain, 7000)                     \
  F(cuCtxSetCurrent, 4000) F(cuCtxSynchronize, 2000) F(cuStreamCreate, 2000) F(cuStreamDestroy, 4000)                \
  F(cuStreamSynchronize, 2000) F(cuStreamWaitEvent, 3020) F(cuEventCreate, 2000) F(cuEventDestroy, 4000)             \
  F(cuEventRecord, 2000) F(cuEventQuery, 2000) F(cuEventElapsedTime, 2000) F(cuMemAlloc, 3020) F(cuMemFree, 3020)    \
  F(cuMemHostAlloc, 2020) F(cuMemFreeHost, 2000) F(cuMemPoolCreate, 11020) F(cuMemPoolSetAttribute, 11020)           \
  F(cuMemAllocFromPoolAsync, 11020) F(cuMemFreeAsync, 11020) F(cuMemsetD8Async, 3020) F(cuMemcpyHtoDAsync, 3020)     \
  F(cuMemcpyDtoHAsync, 3020) F(cuMemcpyDtoDAsync, 3020) F(cuModuleLoadData, 2000) F(cuModuleGetFunction, 2000)       \
  F(cuLaunchKernel, 4000) F(cuStreamBeginCapture, 10010) F(cuStreamEndCapture, 10000) F(cuGraphCreate, 10000)        \
  F(cuGraphDestroy, 10000) F(cuGraphAddKernelNode, 12000) F(cuGraphInstantiateWithFlags, 11040)                      \
  F(cuGraphUpload, 11010) F(cuGraphLaunch, 10000) F(cuGraphExecKernelNodeSetParams, 12000)                           \
  F(cuGraphExecDestroy, 10000)
/* clang-format on */

/* Nothing here is looked up by name at run time, which would cost each call a load more. */
#pragma GCC visibility push(hidden)

extern struct driver {
#define MEMBER(name, version) PFN_##name##_v##version name;
  FUNCTIONS(MEMBER)
#undef MEMBER
} cu;

#define TRY(call)                              \
  do {                                         \
    const CUresult result = (call);            \
    if (result != CUDA_SUCCESS) return result; \
  } while (0)

enum { block = 256 };

extern CUfunction scaled_sum;
extern CUstream first, second;
extern CUdeviceptr x, y, z;

/* Launches the kernel again and again. */
CUresult launch(CUstream stream, unsigned grid, CUdeviceptr from, CUdeviceptr with, CUdeviceptr to, float alpha,
                long calls);

/* driver_event.c: what the others need is made once; `open_times` makes what a time is asked of. */
CUresult set_up_events(void);
CUresult open_times(void);
CUresult close_times(void);
CUresult event_record(long calls);
CUresult event_record_wait(long calls);
CUresult event_query(long calls);
CUresult event_elapsed_time(long calls);
CUresult event_create_destroy(long calls);
CUresult event_create_record_destroy(long calls);

/* driver_graph.c: each opens what it needs for a graph of so many kernels, one after the other. */
CUresult open_graph10(void);
CUresult open_graph1000(void);
CUresult close_graph(void);
CUresult graph_replay(long calls);
CUresult graph_run(long calls);
CUresult graph_update10(long calls);
CUresult graph_capture1000(long calls);
CUresult graph_record1000(long calls);

#pragma GCC visibility pop
