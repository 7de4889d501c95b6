/* A driver that does nothing and says it is done, for what can be tested of a driver with no GPU: which functions are
 * looked for, which are called and how often, and what becomes of an error.
 *
 * FAKE_VERSION=11080    the version of CUDA that it says it has; 13000 otherwise
 * FAKE_MISSING=name     a function that it lacks
 * FAKE_FAILS=name:700   a function that answers with an error, after the first FAKE_AFTER calls of it
 *
 * `calls(name)` tells how often a function was called. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { most_functions = 128 };

static struct {
  const char* name;
  long calls;
} counters[most_functions];

static int context;
static __thread void* current;
static uintptr_t next_handle = 1 << 20;
static uint64_t next_memory = UINT64_C(0x7f0000000000);

/* Counts the call; what it answers. */
static int enter(const char* name) {
  size_t i = 0;
  while (counters[i].name && strcmp(counters[i].name, name) != 0) ++i;
  counters[i].name = name;
  const long calls = counters[i].calls++;
  const char* fails = getenv("FAKE_FAILS");
  const size_t length = strlen(name);
  if (!fails || strncmp(fails, name, length) != 0 || fails[length] != ':') return 0;
  const char* after = getenv("FAKE_AFTER");
  return calls < (after ? atol(after) : 0) ? 0 : atoi(fails + length + 1);
}

long calls(const char* name) {
  for (size_t i = 0; i < most_functions && counters[i].name; ++i)
    if (strcmp(counters[i].name, name) == 0) return counters[i].calls;
  return 0;
}

static void* new_handle(void) { return (void*)(next_handle += 64); }

#define FUNCTION(name, parameters, body) \
  static int name parameters {           \
    const int status = enter(#name);     \
    if (status != 0) return status;      \
    body;                                \
    return 0;                            \
  }
/* Of these nothing is wanted but the answer. */
#define PLAIN(name) FUNCTION(name, (void), )

FUNCTION(cuGetErrorName, (int code, const char** text), (void)code; *text = "CUDA_ERROR_FAKE")
FUNCTION(cuGetErrorString, (int code, const char** text), (void)code; *text = "a fake error")
FUNCTION(cuDriverGetVersion, (int* version),
         const char* wanted = getenv("FAKE_VERSION"); *version = wanted ? atoi(wanted) : 13000)
FUNCTION(cuDeviceGet, (int* device, int ordinal), *device = ordinal)
FUNCTION(cuDeviceGetCount, (int* count), *count = 1)
FUNCTION(cuDeviceGetName, (char* name, int length, int device), (void)device; strncpy(name, "Fake GPU", (size_t)length))
FUNCTION(cuDeviceTotalMem, (size_t* bytes, int device), (void)device; *bytes = (size_t)1 << 34)
/* 75: the major compute capability; 97: the most shared memory of a block. */
FUNCTION(cuDeviceGetAttribute, (int* value, int which, int device), (void)device;
         *value = which == 75 ? 9 : which == 97 ? 232448 : 0)
FUNCTION(cuDevicePrimaryCtxRetain, (void** made, int device), (void)device; *made = &context)
FUNCTION(cuCtxGetCurrent, (void** found), *found = current)
FUNCTION(cuCtxSetCurrent, (void* wanted), current = wanted)
FUNCTION(cuMemGetInfo, (size_t* available, size_t* total), *available = *total = (size_t)1 << 34)
FUNCTION(cuStreamCreateWithPriority, (void** stream, unsigned flags, int priority), (void)flags; (void)priority;
         *stream = new_handle())
FUNCTION(cuStreamGetPriority, (void* stream, int* priority), (void)stream; *priority = 0)
FUNCTION(cuEventCreate, (void** event, unsigned flags), (void)flags; *event = new_handle())
FUNCTION(cuMemPoolCreate, (void** pool, void* properties), (void)properties; *pool = new_handle())
FUNCTION(cuMemPoolGetAttribute, (void* pool, int which, uint64_t* value), (void)pool; (void)which; *value = 0)
FUNCTION(cuMemAllocFromPoolAsync, (uint64_t* memory, size_t bytes, void* pool, void* stream), (void)pool; (void)stream;
         *memory = next_memory; next_memory += (bytes + 511) / 512 * 512)
FUNCTION(cuMemHostAlloc, (void** memory, size_t bytes, unsigned flags), (void)flags;
         *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096))
FUNCTION(cuMemFreeHost, (void* memory), free(memory))
FUNCTION(cuModuleLoadDataEx, (void** module, const void* image, unsigned count, void* options, void* values),
         (void)image; (void)count; (void)options; (void)values; *module = new_handle())
FUNCTION(cuModuleGetFunction, (void** function, void* module, const char* name), (void)module; (void)name;
         *function = new_handle())
/* 0: the most threads of a block. */
FUNCTION(cuFuncGetAttribute, (int* value, int which, void* function), (void)function; *value = which == 0 ? 1024 : 0)
/* Every kernel has three parameters of eight bytes. */
FUNCTION(cuFuncGetParamInfo, (void* function, size_t index, size_t* offset, size_t* size), (void)function;
         if (index > 2) return 1;
         *offset = 8 * index; *size = 8)
PLAIN(cuInit)
PLAIN(cuCtxSynchronize)
PLAIN(cuStreamQuery)
PLAIN(cuStreamSynchronize)
PLAIN(cuStreamWaitEvent)
PLAIN(cuEventRecord)
PLAIN(cuEventQuery)
PLAIN(cuEventSynchronize)
PLAIN(cuEventDestroy)
PLAIN(cuStreamDestroy)
PLAIN(cuMemFreeAsync)
PLAIN(cuMemcpyAsync)
PLAIN(cuMemsetD8Async)
PLAIN(cuMemsetD32Async)
PLAIN(cuModuleUnload)
PLAIN(cuLaunchKernel)
/* For functions that no test calls. */
PLAIN(other)

#define ENTRY(name) {#name, (void*)name}
static const struct {
  const char* name;
  void* function;
} functions[] = {
    ENTRY(cuGetErrorName),      ENTRY(cuGetErrorString),           ENTRY(cuDriverGetVersion),
    ENTRY(cuDeviceGet),         ENTRY(cuDeviceGetCount),           ENTRY(cuDeviceGetName),
    ENTRY(cuDeviceTotalMem),    ENTRY(cuDeviceGetAttribute),       ENTRY(cuDevicePrimaryCtxRetain),
    ENTRY(cuCtxGetCurrent),     ENTRY(cuCtxSetCurrent),            ENTRY(cuMemGetInfo),
    ENTRY(cuStreamGetPriority), ENTRY(cuStreamCreateWithPriority), ENTRY(cuEventCreate),
    ENTRY(cuMemPoolCreate),     ENTRY(cuMemPoolGetAttribute),      ENTRY(cuMemAllocFromPoolAsync),
    ENTRY(cuMemHostAlloc),      ENTRY(cuMemFreeHost),              ENTRY(cuModuleLoadDataEx),
    ENTRY(cuModuleGetFunction), ENTRY(cuFuncGetAttribute),         ENTRY(cuFuncGetParamInfo),
    ENTRY(cuInit),              ENTRY(cuCtxSynchronize),           ENTRY(cuStreamQuery),
    ENTRY(cuStreamSynchronize), ENTRY(cuStreamWaitEvent),          ENTRY(cuEventRecord),
    ENTRY(cuEventQuery),        ENTRY(cuEventSynchronize),         ENTRY(cuEventDestroy),
    ENTRY(cuStreamDestroy),     ENTRY(cuMemFreeAsync),             ENTRY(cuMemcpyAsync),
    ENTRY(cuMemsetD8Async),     ENTRY(cuMemsetD32Async),           ENTRY(cuModuleUnload),
    ENTRY(cuLaunchKernel),
};

/* What libcuda.so exports under this name. `found` may be null. */
int cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t flags, int* found) {
  (void)version;
  (void)flags;
  const char* missing = getenv("FAKE_MISSING");
  const int absent = missing && strcmp(missing, name) == 0;
  *function = absent ? NULL : (void*)other;
  if (found) *found = absent ? 1 : 0;
  for (size_t i = 0; !absent && i < sizeof functions / sizeof *functions; ++i)
    if (strcmp(functions[i].name, name) == 0) *function = functions[i].function;
  return 0;
}
