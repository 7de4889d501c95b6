/* The benchmarks of the CUDA device in C on the driver API: the least that each operation costs.
 *
 * The driver is opened at run time. Every batch runs here from its first call to its last, with its context current and
 * all that it needs made beforehand; the queue is drained after it, outside the time.
 */
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct driver cu;

enum { most_threads = 8, lanes = 3 };

static const size_t page = 4096;
static CUcontext context;
CUfunction scaled_sum;
static CUmemoryPool pool;
CUstream first;
CUstream second;
CUdeviceptr x, y, z;
static void* pinned;
/* What a batch took per call, where it is not the time from its begin to its end. */
static double own_time;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

/* Launches */

CUresult launch(CUstream stream, unsigned grid, CUdeviceptr from, CUdeviceptr with, CUdeviceptr to, float alpha,
                long calls) {
  void* arguments[] = {&from, &with, &to, &alpha};
  for (long i = 0; i < calls; ++i)
    TRY(cu.cuLaunchKernel(scaled_sum, grid, 1, 1, block, 1, 1, 0, stream, arguments, NULL));
  return CUDA_SUCCESS;
}

static CUresult launch_4args(long calls) { return launch(first, 1, x, y, z, 2.0F, calls); }

static struct worker {
  CUstream stream;
  CUdeviceptr x, y, z;
  long calls;
  double begin, end;
  CUresult status;
} workers[most_threads];

static pthread_barrier_t start;

static CUresult open_threads(void) {
  for (int i = 0; i < most_threads && !workers[i].stream; ++i) {
    TRY(cu.cuStreamCreate(&workers[i].stream, CU_STREAM_NON_BLOCKING));
    TRY(cu.cuMemAlloc(&workers[i].x, page));
    TRY(cu.cuMemAlloc(&workers[i].y, page));
    TRY(cu.cuMemAlloc(&workers[i].z, page));
  }
  return CUDA_SUCCESS;
}

static void* work(void* argument) {
  struct worker* self = argument;
  self->status = cu.cuCtxSetCurrent(context);
  pthread_barrier_wait(&start);
  self->begin = now();
  if (self->status == CUDA_SUCCESS)
    self->status = launch(self->stream, 1, self->x, self->y, self->z, 2.0F, self->calls);
  self->end = now();
  return NULL;
}

static CUresult launch_threads(int threads, long calls) {
  pthread_t ids[most_threads];
  pthread_barrier_init(&start, NULL, (unsigned)threads);
  for (int i = 0; i < threads; ++i) {
    workers[i].calls = calls;
    if (pthread_create(&ids[i], NULL, work, &workers[i]) != 0) return CUDA_ERROR_OPERATING_SYSTEM;
  }
  double begin = 0, end = 0;
  CUresult status = CUDA_SUCCESS;
  for (int i = 0; i < threads; ++i) {
    pthread_join(ids[i], NULL);
    if (i == 0 || workers[i].begin < begin) begin = workers[i].begin;
    if (i == 0 || workers[i].end > end) end = workers[i].end;
    if (workers[i].status != CUDA_SUCCESS) status = workers[i].status;
  }
  pthread_barrier_destroy(&start);
  own_time = (end - begin) / (double)(threads * calls);
  return status;
}

static CUresult launch_threads1(long calls) { return launch_threads(1, calls); }
static CUresult launch_threads2(long calls) { return launch_threads(2, calls); }
static CUresult launch_threads4(long calls) { return launch_threads(4, calls); }
static CUresult launch_threads8(long calls) { return launch_threads(8, calls); }

/* Streams */

static CUresult stream_create_destroy(long calls) {
  for (long i = 0; i < calls; ++i) {
    CUstream made;
    TRY(cu.cuStreamCreate(&made, CU_STREAM_NON_BLOCKING));
    TRY(cu.cuStreamDestroy(made));
  }
  return CUDA_SUCCESS;
}

static CUresult stream_synchronize_idle(long calls) {
  for (long i = 0; i < calls; ++i) TRY(cu.cuStreamSynchronize(first));
  return CUDA_SUCCESS;
}

/* The driver knows no current stream; this is what a program of its own would keep. */
static _Thread_local CUstream current;

__attribute__((noinline)) static CUstream exchange_current(CUstream stream) {
  const CUstream before = current;
  current = stream;
  __asm__ volatile("" ::: "memory");
  return before;
}

__attribute__((noinline)) static CUstream get_current(void) {
  __asm__ volatile("" ::: "memory");
  return current;
}

static CUresult stream_with(long calls) {
  for (long i = 0; i < calls; ++i) {
    const CUstream before = exchange_current(first);
    exchange_current(before);
  }
  return CUDA_SUCCESS;
}

static CUresult stream_current(long calls) {
  for (long i = 0; i < calls; ++i) get_current();
  return CUDA_SUCCESS;
}

/* Memory */

static CUresult memory_alloc_free(long calls) {
  for (long i = 0; i < calls; ++i) {
    CUdeviceptr made;
    TRY(cu.cuMemAllocFromPoolAsync(&made, page, pool, first));
    TRY(cu.cuMemFreeAsync(made, first));
  }
  return CUDA_SUCCESS;
}

static CUresult memory_zeros_free(long calls) {
  for (long i = 0; i < calls; ++i) {
    CUdeviceptr made;
    TRY(cu.cuMemAllocFromPoolAsync(&made, page, pool, first));
    TRY(cu.cuMemsetD8Async(made, 0, page, first));
    TRY(cu.cuMemFreeAsync(made, first));
  }
  return CUDA_SUCCESS;
}

static CUresult copy_pinned(long calls) {
  for (long i = 0; i < calls; ++i) TRY(cu.cuMemcpyHtoDAsync(x, pinned, page, first));
  return CUDA_SUCCESS;
}

static CUresult copy_device(long calls) {
  for (long i = 0; i < calls; ++i) TRY(cu.cuMemcpyDtoDAsync(y, x, page, first));
  return CUDA_SUCCESS;
}

/* The pipeline */

static const size_t chunk = (size_t)64 << 20;

static struct lane {
  CUstream stream;
  float *from, *to;
  CUdeviceptr x, z;
} lane[lanes];

static CUresult open_pipeline(void) {
  for (int i = 0; i < lanes; ++i) {
    TRY(cu.cuStreamCreate(&lane[i].stream, CU_STREAM_NON_BLOCKING));
    TRY(cu.cuMemHostAlloc((void**)&lane[i].from, chunk, 0));
    TRY(cu.cuMemHostAlloc((void**)&lane[i].to, chunk, 0));
    TRY(cu.cuMemAlloc(&lane[i].x, chunk));
    TRY(cu.cuMemAlloc(&lane[i].z, chunk));
    for (size_t k = 0; k < chunk / sizeof(float); ++k) lane[i].from[k] = 2.0F;
    memset(lane[i].to, 0, chunk);
  }
  return CUDA_SUCCESS;
}

static CUresult close_pipeline(void) {
  for (int i = 0; i < lanes; ++i) {
    if (lane[i].to[0] != 3.0F || lane[i].to[chunk / sizeof(float) - 1] != 3.0F) return CUDA_ERROR_UNKNOWN;
    TRY(cu.cuStreamDestroy(lane[i].stream));
    TRY(cu.cuMemFreeHost(lane[i].from));
    TRY(cu.cuMemFreeHost(lane[i].to));
    TRY(cu.cuMemFree(lane[i].x));
    TRY(cu.cuMemFree(lane[i].z));
  }
  return CUDA_SUCCESS;
}

/* `calls` is the number of chunks, which take turns on the streams. */
static CUresult pipeline(long calls) {
  for (long i = 0; i < calls; ++i) {
    const struct lane* on = &lane[i % lanes];
    TRY(cu.cuMemcpyHtoDAsync(on->x, on->from, chunk, on->stream));
    TRY(launch(on->stream, (unsigned)(chunk / sizeof(float) / block), on->x, on->x, on->z, 0.5F, 1));
    TRY(cu.cuMemcpyDtoHAsync(on->to, on->z, chunk, on->stream));
  }
  for (int i = 0; i < lanes; ++i) TRY(cu.cuStreamSynchronize(lane[i].stream));
  return CUDA_SUCCESS;
}

/* What Python calls */

static const struct twin {
  const char* id;
  CUresult (*batch)(long calls);
  CUresult (*open)(void);
  CUresult (*close)(void);
} twins[] = {
    {"cuda.launch.4args", launch_4args, NULL, NULL},
    {"cuda.launch.kernel4", launch_4args, NULL, NULL},
    {"cuda.launch.threads1", launch_threads1, open_threads, NULL},
    {"cuda.launch.threads2", launch_threads2, open_threads, NULL},
    {"cuda.launch.threads4", launch_threads4, open_threads, NULL},
    {"cuda.launch.threads8", launch_threads8, open_threads, NULL},
    {"cuda.event.record", event_record, NULL, NULL},
    {"cuda.event.record_own_thread", event_record, NULL, NULL},
    {"cuda.event.record_wait", event_record_wait, NULL, NULL},
    {"cuda.event.query", event_query, NULL, NULL},
    {"cuda.event.elapsed_time", event_elapsed_time, open_times, close_times},
    {"cuda.event.create_destroy", event_create_destroy, NULL, NULL},
    {"cuda.event.create_record_destroy", event_create_record_destroy, NULL, NULL},
    {"cuda.stream.create_destroy", stream_create_destroy, NULL, NULL},
    {"cuda.stream.with", stream_with, NULL, NULL},
    {"cuda.stream.current", stream_current, NULL, NULL},
    {"cuda.stream.synchronize_idle", stream_synchronize_idle, NULL, NULL},
    {"cuda.memory.alloc_free_4k", memory_alloc_free, NULL, NULL},
    {"cuda.memory.zeros_free_4k", memory_zeros_free, NULL, NULL},
    {"cuda.copy.pinned_4k", copy_pinned, NULL, NULL},
    {"cuda.copy.device_4k", copy_device, NULL, NULL},
    {"cuda.graph.replay10", graph_replay, open_graph10, close_graph},
    {"cuda.graph.replay1000", graph_run, open_graph1000, close_graph},
    {"cuda.graph.update10", graph_update10, open_graph10, close_graph},
    {"cuda.graph.capture1000", graph_capture1000, NULL, NULL},
    {"cuda.graph.record1000", graph_record1000, NULL, NULL},
    {"cuda.pipeline.overlap", pipeline, open_pipeline, close_pipeline},
};

enum { twin_count = sizeof twins / sizeof twins[0] };

static char message[256];

static const char* told(CUresult status, const char* what) {
  if (status == CUDA_SUCCESS) return NULL;
  const char* name = NULL;
  if (cu.cuGetErrorName) cu.cuGetErrorName(status, &name);
  snprintf(message, sizeof message, "%s: %s (%d)", what, name ? name : "error", (int)status);
  return message;
}

static CUresult set_up(const char* ptx, CUstream one, CUstream another) {
  CUdevice device;
  CUmodule module;
  TRY(cu.cuInit(0));
  TRY(cu.cuDeviceGet(&device, 0));
  TRY(cu.cuDevicePrimaryCtxRetain(&context, device));
  TRY(cu.cuCtxSetCurrent(context));
  TRY(cu.cuModuleLoadData(&module, ptx));
  TRY(cu.cuModuleGetFunction(&scaled_sum, module, "scaled_sum"));
  const CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                     .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
  cuuint64_t keep_all = ~(cuuint64_t)0;
  TRY(cu.cuMemPoolCreate(&pool, &properties));
  TRY(cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_all));
  first = one;
  second = another;
  TRY(set_up_events());
  TRY(cu.cuMemAlloc(&x, page));
  TRY(cu.cuMemAlloc(&y, page));
  TRY(cu.cuMemAlloc(&z, page));
  TRY(cu.cuMemHostAlloc(&pinned, page, 0));
  return cu.cuCtxSynchronize();
}

static const struct twin* find(const char* id) {
  for (int i = 0; i < twin_count; ++i) {
    if (strcmp(twins[i].id, id) == 0) return &twins[i];
  }
  return NULL;
}

/* The ID at a position; null behind the last. Needs no driver. */
const char* twin_id(int position) { return position < twin_count ? twins[position].id : NULL; }

/* All functions from here on return what went wrong, or null. `ptx` is the code of the kernel; the streams are those of
 * the benchmarks that the twins are compared with, as the same call of the driver takes longer in some streams. */
const char* twin_start(const char* ptx, CUstream one, CUstream another) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return "libcuda.so.1 cannot be opened";
  PFN_cuGetProcAddress_v12000 lookup = (PFN_cuGetProcAddress_v12000)dlsym(library, "cuGetProcAddress_v2");
  if (!lookup) return "the CUDA driver is older than CUDA 12.0";
  CUdriverProcAddressQueryResult found;
#define FIND(name, version)                                                                                    \
  if (lookup(#name, (void**)&cu.name, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &found) != CUDA_SUCCESS || !cu.name) \
    return "the CUDA driver has no " #name;
  FUNCTIONS(FIND)
#undef FIND
  return told(set_up(ptx, one, another), "setting up");
}

const char* twin_open(const char* id) {
  const struct twin* twin = find(id);
  if (!twin) return "there is no such benchmark";
  return twin->open ? told(twin->open(), id) : NULL;
}

/* Runs a batch and drains the queue; the time of one call in nanoseconds. */
const char* twin_measure(const char* id, long calls, double* per_call) {
  const struct twin* twin = find(id);
  if (!twin) return "there is no such benchmark";
  const char* wrong = told(cu.cuCtxSetCurrent(context), "making the context current");
  if (wrong) return wrong;
  own_time = 0;
  const double begin = now();
  const CUresult status = twin->batch(calls);
  const double elapsed = now() - begin;
  *per_call = own_time > 0 ? own_time : elapsed / (double)calls;
  wrong = told(status, id);
  return wrong ? wrong : told(cu.cuCtxSynchronize(), "draining");
}

const char* twin_close(const char* id) {
  const struct twin* twin = find(id);
  if (!twin) return "there is no such benchmark";
  return twin->close ? told(twin->close(), id) : NULL;
}
