/* A driver for a machine with no GPU. Its streams are real: they run what is put into them in their order, later, on a
 * thread of its own, and keep CUDA's order between the legacy stream and blocking ones. Its memory is the host's. It
 * copies and fills, by the kernels of core/src/cuda/elements.cu too, and runs graphs; other kernels do nothing. So most
 * of what holds on a GPU can be tested, and in addition which functions are looked for, how often they are called, and
 * what becomes of an error.
 *
 * FAKE_DEVICES=2        how many GPUs there are, two at most; 1 otherwise
 * FAKE_VERSION=11080    the version of CUDA that it says it has; 13000 otherwise
 * FAKE_MISSING=name     a function that it lacks
 * FAKE_FAILS=name:700   a function that answers with an error
 * FAKE_ASKS_CONTEXT=1   records and waits ask for a current context
 *
 * `calls(name)` tells how often a function was called. */
#include "simulated_graph.h"

enum { most_functions = 128 };

/* Calls */

static struct {
  const char* name;
  long calls;
} counters[most_functions];

/* Counts the call; what it answers. */
static int enter(const char* name) {
  pthread_mutex_lock(&mutex);
  size_t i = 0;
  while (counters[i].name && strcmp(counters[i].name, name) != 0) ++i;
  counters[i].name = name;
  ++counters[i].calls;
  pthread_mutex_unlock(&mutex);
  const char* fails = getenv("FAKE_FAILS");
  const size_t length = strlen(name);
  return fails && strncmp(fails, name, length) == 0 && fails[length] == ':' ? atoi(fails + length + 1) : 0;
}

long calls(const char* name) {
  for (size_t i = 0; i < most_functions && counters[i].name; ++i)
    if (strcmp(counters[i].name, name) == 0) return counters[i].calls;
  return 0;
}

/* The functions of the driver */

static int device_count(void) {
  const char* wanted = getenv("FAKE_DEVICES");
  return wanted && atoi(wanted) == most_devices ? most_devices : 1;
}

static int asks_context(void) { return getenv("FAKE_ASKS_CONTEXT") != NULL; }

#define FUNCTION(name, parameters, body) \
  static int name parameters {           \
    const int status = enter(#name);     \
    if (status != 0) return status;      \
    body;                                \
    return 0;                            \
  }

FUNCTION(cuInit, (unsigned flags), (void)flags)
FUNCTION(cuGetErrorName, (int code, const char** text), (void)code; *text = "CUDA_ERROR_FAKE")
FUNCTION(cuGetErrorString, (int code, const char** text), (void)code; *text = "a fake error")
FUNCTION(cuDriverGetVersion, (int* version), const char* wanted = getenv("FAKE_VERSION");
         *version = wanted ? atoi(wanted) : 13000)
FUNCTION(cuDeviceGet, (int* device, int ordinal), *device = ordinal)
FUNCTION(cuDeviceGetCount, (int* count), *count = device_count())
FUNCTION(cuDeviceGetName, (char* name, int length, int device), (void)device;
         strncpy(name, "Simulated GPU", (size_t)length))
FUNCTION(cuDeviceTotalMem, (size_t* bytes, int device), (void)device; *bytes = total_memory)
/* 75: the major compute capability; 97: the most shared memory of a block. */
FUNCTION(cuDeviceGetAttribute, (int* value, int which, int device), (void)device; *value = which == 75   ? 9
                                                                                           : which == 97 ? 232448
                                                                                                         : 0)
FUNCTION(cuDeviceCanAccessPeer, (int* can, int device, int peer), *can = device != peer)
FUNCTION(cuDevicePrimaryCtxRetain, (void** made, int device), devices[device].legacy.device = *made = &devices[device])
FUNCTION(cuCtxGetCurrent, (void** found), *found = current)
FUNCTION(cuCtxSetCurrent, (void* wanted), current = wanted)
FUNCTION(cuCtxSynchronize, (void), synchronize_all())
FUNCTION(cuMemGetInfo, (size_t* available, size_t* total), *total = total_memory; pthread_mutex_lock(&mutex);
         *available = total_memory - current->used_memory; pthread_mutex_unlock(&mutex))
FUNCTION(cuStreamCreateWithPriority, (void** stream, unsigned flags, int priority),
         if (!current) return invalid_context;
         *stream = new_stream(flags, priority < -5  ? -5
                                     : priority > 0 ? 0
                                                    : priority))
FUNCTION(cuStreamDestroy, (void* stream), (void)stream)
FUNCTION(cuStreamQuery, (void* stream), return query_stream(stream_of(stream), 0))
FUNCTION(cuStreamSynchronize, (void* stream), return query_stream(stream_of(stream), 1))
FUNCTION(cuStreamWaitEvent, (void* stream, void* event, unsigned flags), (void)flags;
         if (asks_context() && !current) return invalid_context; put_wait(stream_of(stream), event))
FUNCTION(cuStreamGetPriority, (void* stream, int* priority), *priority = stream_of(stream)->priority)
FUNCTION(cuStreamGetFlags, (void* stream, unsigned* flags), *flags = stream_of(stream)->flags)
FUNCTION(cuStreamGetCtx, (void* stream, void** found), int known = 0;
         for (struct stream* other = streams; other; other = other->next) known |= other == stream;
         if (!known) return invalid_value; *found = ((struct stream*)stream)->device)
FUNCTION(cuStreamBeginCapture, (void* stream, int mode), (void)mode;
         if (is_legacy(stream_of(stream)) || stream_of(stream)->captured) return invalid_value;
         stream_of(stream)->captured = new_graph())
FUNCTION(cuStreamEndCapture, (void* stream, struct graph** graph),
         if (!stream_of(stream)->captured) return invalid_value;
         *graph = stream_of(stream)->captured; stream_of(stream)->captured = NULL)
FUNCTION(cuEventCreate, (void** event, unsigned flags), (void)flags; if (!current) return invalid_context;
         *event = new_event())
FUNCTION(cuEventDestroy, (void* event), (void)event)
FUNCTION(cuEventRecord, (void* event, void* stream), if (asks_context() && !current) return invalid_context;
         return put_record(event, stream_of(stream)))
FUNCTION(cuEventQuery, (void* event), return query_event(event, 0))
FUNCTION(cuEventSynchronize, (void* event), return query_event(event, 1))
FUNCTION(cuEventElapsedTime, (float* milliseconds, void* begin, void* end),
         return elapsed_time(milliseconds, begin, end))
/* 12 bytes into the properties: the ordinal. */
FUNCTION(cuMemPoolCreate, (void** made, const void* properties), *made = &devices[((const int*)properties)[3]])
FUNCTION(cuMemPoolSetAttribute, (void* which, int name, void* value), (void)which; (void)name; (void)value)
FUNCTION(cuMemPoolGetAttribute, (void* which, int name, uint64_t* value), (void)which; (void)name; *value = 0)
FUNCTION(cuMemPoolTrimTo, (void* which, size_t bytes), (void)which; (void)bytes)
/* 4 bytes into the access: the ordinal. */
FUNCTION(cuMemPoolSetAccess, (void* which, const int* access, size_t count), (void)count;
         ((struct device*)which)->shared_with |= 1U << access[1])
FUNCTION(cuMemAllocFromPoolAsync, (uint64_t* memory, size_t bytes, void* which, void* stream), (void)stream;
         return allocate(memory, bytes, which))
FUNCTION(cuMemFreeAsync, (uint64_t memory, void* stream),
         put(stream_of(stream), (struct work){.kind = free_memory, .to = (char*)(uintptr_t)memory}))
FUNCTION(cuPointerGetAttributes, (unsigned count, const int* asked, void** answers, uint64_t pointer), (void)count;
         (void)asked; const struct device* found = device_of(pointer);
         *(unsigned*)answers[0] = found ? device_memory : 0; *(unsigned*)answers[1] = 0;
         *(int*)answers[2] = found ? (int)(found - devices) : 0)
FUNCTION(cuMemHostAlloc, (void** memory, size_t bytes, unsigned flags), (void)flags;
         *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096))
FUNCTION(cuMemFreeHost, (void* memory), free(memory))
FUNCTION(cuMemcpyAsync, (uint64_t to, uint64_t from, size_t bytes, void* stream),
         const struct device* device = stream_of(stream)->device;
         if (!reaches(device, to) || !reaches(device, from)) return invalid_value;
         if (stream_of(stream)->captured) return capture_copy(stream_of(stream), to, from, bytes);
         put(stream_of(stream), copy_work(to, from, bytes)))
FUNCTION(cuMemcpy2DAsync, (void), return invalid_value)
FUNCTION(cuMemsetD8Async, (uint64_t to, unsigned char value, size_t count, void* stream),
         put(stream_of(stream), set_work(to, value, 1, count)))
FUNCTION(cuMemsetD16Async, (uint64_t to, unsigned short value, size_t count, void* stream),
         put(stream_of(stream), set_work(to, value, 2, count)))
FUNCTION(cuMemsetD32Async, (uint64_t to, unsigned value, size_t count, void* stream),
         put(stream_of(stream), set_work(to, value, 4, count)))
/* PTX says its version first, but for comments. */
FUNCTION(cuModuleLoadDataEx, (void** module, const void* image, unsigned count, void* options, void* values),
         (void)count;
         (void)options; (void)values; if (!current) return invalid_context;
         if (!strstr(image, ".version")) return invalid_image; *module = current)
FUNCTION(cuModuleUnload, (void* module), (void)module)
FUNCTION(cuModuleGetFunction, (void** function, void* module, const char* name), *function = new_function(module, name))
/* 0: the most threads of a block. */
FUNCTION(cuFuncGetAttribute, (int* value, int which, void* function), (void)function; *value = which == 0 ? 1024 : 0)
FUNCTION(cuFuncSetAttribute, (void* function, int which, int value), (void)function; (void)which; (void)value)
/* Every kernel has three parameters of eight bytes. */
FUNCTION(cuFuncGetParamInfo, (void* function, size_t index, size_t* offset, size_t* size), (void)function;
         if (index > 2) return invalid_value; *offset = 8 * index; *size = 8)
FUNCTION(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int* blocks_, void* function, int threads, size_t shared),
         (void)function;
         (void)threads; (void)shared; *blocks_ = 2)
FUNCTION(cuLaunchKernel,
         (void* function, unsigned x, unsigned y, unsigned z, unsigned a, unsigned b, unsigned c, unsigned shared,
          void* stream, void** parameters, void** extra),
         (void)x;
         (void)y; (void)z; (void)a; (void)b; (void)c; (void)shared; (void)extra;
         return put_kernel(function, parameters, stream))
FUNCTION(cuLaunchKernelEx, (void), return invalid_value)
FUNCTION(cuGraphCreate, (struct graph * *graph, unsigned flags), (void)flags; *graph = new_graph())
FUNCTION(cuGraphDestroy, (struct graph * graph), let_go_graph(graph))
FUNCTION(cuGraphAddKernelNode,
         (struct node * *made, struct graph* graph, struct node** after, size_t count,
          const struct kernel_parameters* parameters),
         struct node node;
         const int wrong = read_kernel(&node, parameters);
         return wrong ? wrong : add_node(made, graph, after, count, node))
FUNCTION(cuGraphAddMemcpyNode,
         (struct node * *made, struct graph* graph, struct node** after, size_t count,
          const struct copy_parameters* parameters, struct device* context),
         struct node node;
         const int wrong = read_copy(&node, parameters, context);
         return wrong ? wrong : add_node(made, graph, after, count, node))
FUNCTION(cuGraphAddMemsetNode,
         (struct node * *made, struct graph* graph, struct node** after, size_t count,
          const struct set_parameters* parameters, struct device* context),
         struct node node;
         const int wrong = read_set(&node, parameters, context);
         return wrong ? wrong : add_node(made, graph, after, count, node))
FUNCTION(cuGraphAddEmptyNode, (struct node * *made, struct graph* graph, struct node** after, size_t count),
         return add_node(made, graph, after, count, (struct node){.kind = empty_node}))
FUNCTION(cuGraphAddChildGraphNode,
         (struct node * *made, struct graph* graph, struct node** after, size_t count, const struct graph* child),
         return add_child(made, graph, after, count, child))
FUNCTION(cuGraphAddNode,
         (struct node * *made, struct graph* graph, struct node** after, const void* edges, size_t count,
          struct node_parameters* parameters),
         if (edges) return invalid_value;
         return add_conditional(made, graph, after, count, parameters))
FUNCTION(cuGraphConditionalHandleCreate,
         (uint64_t* handle, struct graph* graph, struct device* context, unsigned value, unsigned flags), (void)graph;
         if (!context || flags != 0) return invalid_value; *handle = new_condition(value))
/* 4: the blocks per cluster; 2: cooperative. */
FUNCTION(cuGraphKernelNodeSetAttribute, (struct node * node, int which, const void* value), (void)value;
         if (node->kind != kernel_node || (which != 4 && which != 2)) return invalid_value)
FUNCTION(cuGraphInstantiateWithFlags, (struct plan * *executable, const struct graph* graph, uint64_t flags),
         if (flags != 0 || !is_valid(graph, NULL)) return invalid_value;
         *executable = new_plan(graph))
FUNCTION(cuGraphUpload, (struct plan * executable, void* stream), (void)executable; (void)stream_of(stream))
FUNCTION(cuGraphLaunch, (const struct plan* executable, void* stream),
         put(stream_of(stream), (struct work){.kind = run_graph, .plan = copy_plan(executable)}))
FUNCTION(cuGraphExecKernelNodeSetParams,
         (struct plan * executable, const struct node* node, const struct kernel_parameters* parameters),
         struct node changed;
         const int wrong = read_kernel(&changed, parameters);
         return wrong ? wrong : change_node(executable, node, &changed))
FUNCTION(cuGraphExecMemcpyNodeSetParams,
         (struct plan * executable, const struct node* node, const struct copy_parameters* parameters,
          struct device* context),
         struct node changed;
         const int wrong = read_copy(&changed, parameters, context);
         return wrong ? wrong : change_node(executable, node, &changed))
FUNCTION(cuGraphExecMemsetNodeSetParams,
         (struct plan * executable, const struct node* node, const struct set_parameters* parameters,
          struct device* context),
         struct node changed;
         const int wrong = read_set(&changed, parameters, context);
         return wrong ? wrong : change_node(executable, node, &changed))
FUNCTION(cuGraphExecDestroy, (struct plan * executable), let_go_plan(executable))

#define ENTRY(name) {#name, (void*)name}
static const struct {
  const char* name;
  void* function;
} functions[] = {
    ENTRY(cuInit),
    ENTRY(cuGetErrorName),
    ENTRY(cuGetErrorString),
    ENTRY(cuDriverGetVersion),
    ENTRY(cuDeviceGet),
    ENTRY(cuDeviceGetCount),
    ENTRY(cuDeviceGetName),
    ENTRY(cuDeviceTotalMem),
    ENTRY(cuDeviceGetAttribute),
    ENTRY(cuDeviceCanAccessPeer),
    ENTRY(cuDevicePrimaryCtxRetain),
    ENTRY(cuCtxGetCurrent),
    ENTRY(cuCtxSetCurrent),
    ENTRY(cuCtxSynchronize),
    ENTRY(cuMemGetInfo),
    ENTRY(cuStreamCreateWithPriority),
    ENTRY(cuStreamDestroy),
    ENTRY(cuStreamQuery),
    ENTRY(cuStreamSynchronize),
    ENTRY(cuStreamWaitEvent),
    ENTRY(cuStreamGetPriority),
    ENTRY(cuStreamGetFlags),
    ENTRY(cuStreamGetCtx),
    ENTRY(cuStreamBeginCapture),
    ENTRY(cuStreamEndCapture),
    ENTRY(cuEventCreate),
    ENTRY(cuEventDestroy),
    ENTRY(cuEventRecord),
    ENTRY(cuEventQuery),
    ENTRY(cuEventSynchronize),
    ENTRY(cuEventElapsedTime),
    ENTRY(cuMemPoolCreate),
    ENTRY(cuMemPoolSetAttribute),
    ENTRY(cuMemPoolGetAttribute),
    ENTRY(cuMemPoolTrimTo),
    ENTRY(cuMemPoolSetAccess),
    ENTRY(cuMemAllocFromPoolAsync),
    ENTRY(cuMemFreeAsync),
    ENTRY(cuPointerGetAttributes),
    ENTRY(cuMemHostAlloc),
    ENTRY(cuMemFreeHost),
    ENTRY(cuMemcpyAsync),
    ENTRY(cuMemcpy2DAsync),
    ENTRY(cuMemsetD8Async),
    ENTRY(cuMemsetD16Async),
    ENTRY(cuMemsetD32Async),
    ENTRY(cuModuleLoadDataEx),
    ENTRY(cuModuleUnload),
    ENTRY(cuModuleGetFunction),
    ENTRY(cuFuncGetAttribute),
    ENTRY(cuFuncSetAttribute),
    ENTRY(cuFuncGetParamInfo),
    ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor),
    ENTRY(cuLaunchKernel),
    ENTRY(cuLaunchKernelEx),
    ENTRY(cuGraphCreate),
    ENTRY(cuGraphDestroy),
    ENTRY(cuGraphAddKernelNode),
    ENTRY(cuGraphAddMemcpyNode),
    ENTRY(cuGraphAddMemsetNode),
    ENTRY(cuGraphAddEmptyNode),
    ENTRY(cuGraphAddChildGraphNode),
    ENTRY(cuGraphAddNode),
    ENTRY(cuGraphConditionalHandleCreate),
    ENTRY(cuGraphKernelNodeSetAttribute),
    ENTRY(cuGraphInstantiateWithFlags),
    ENTRY(cuGraphUpload),
    ENTRY(cuGraphLaunch),
    ENTRY(cuGraphExecKernelNodeSetParams),
    ENTRY(cuGraphExecMemcpyNodeSetParams),
    ENTRY(cuGraphExecMemsetNodeSetParams),
    ENTRY(cuGraphExecDestroy),
};

/* What libcuda.so exports under this name. `found` may be null. */
int cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t flags, int* found) {
  (void)version;
  (void)flags;
  const char* missing = getenv("FAKE_MISSING");
  *function = NULL;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i)
    if (strcmp(functions[i].name, name) == 0 && !(missing && strcmp(missing, name) == 0))
      *function = functions[i].function;
  if (found) *found = *function ? 0 : 1;
  return 0;
}
