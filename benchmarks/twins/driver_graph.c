/* The C twins of graphs. */
#include "driver.h"

enum { most_kernels = 1000, updated = 10 };

static CUgraph graph;
static CUgraphExec executable;
static CUgraphNode nodes[most_kernels];

/* Parameters of a launch as `launch` makes it. */
static CUDA_KERNEL_NODE_PARAMS kernel_of(void** arguments) {
  return (CUDA_KERNEL_NODE_PARAMS){.func = scaled_sum,
                                   .gridDimX = 1,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = block,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .kernelParams = arguments};
}

static CUresult open_graph(int kernels) {
  float alpha = 2.0F;
  void* arguments[] = {&x, &y, &z, &alpha};
  const CUDA_KERNEL_NODE_PARAMS kernel = kernel_of(arguments);
  TRY(cu.cuGraphCreate(&graph, 0));
  for (int i = 0; i < kernels; ++i)
    TRY(cu.cuGraphAddKernelNode(&nodes[i], graph, i == 0 ? NULL : &nodes[i - 1], i == 0 ? 0 : 1, &kernel));
  TRY(cu.cuGraphInstantiateWithFlags(&executable, graph, 0));
  TRY(cu.cuGraphUpload(executable, first));
  return cu.cuStreamSynchronize(first);
}

CUresult open_graph10(void) { return open_graph(updated); }

CUresult open_graph1000(void) { return open_graph(most_kernels); }

CUresult close_graph(void) {
  TRY(cu.cuGraphExecDestroy(executable));
  return cu.cuGraphDestroy(graph);
}

CUresult graph_replay(long calls) {
  for (long i = 0; i < calls; ++i) TRY(cu.cuGraphLaunch(executable, first));
  return CUDA_SUCCESS;
}

/* Until the last kernel has run. */
CUresult graph_run(long calls) {
  TRY(graph_replay(calls));
  return cu.cuStreamSynchronize(first);
}

/* Each replay with new arguments for all of its kernels. */
CUresult graph_update10(long calls) {
  for (long i = 0; i < calls; ++i) {
    float alpha = (float)i;
    void* arguments[] = {&x, &y, &z, &alpha};
    const CUDA_KERNEL_NODE_PARAMS kernel = kernel_of(arguments);
    for (int k = 0; k < updated; ++k) TRY(cu.cuGraphExecKernelNodeSetParams(executable, nodes[k], &kernel));
    TRY(cu.cuGraphLaunch(executable, first));
  }
  return CUDA_SUCCESS;
}

static CUresult capture(CUgraph* captured) {
  TRY(cu.cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  const CUresult status = launch(first, 1, x, y, z, 2.0F, most_kernels);
  TRY(cu.cuStreamEndCapture(first, captured));
  return status;
}

/* From the first launch until the graph could be replayed. */
CUresult graph_capture1000(long calls) {
  for (long i = 0; i < calls; ++i) {
    CUgraph captured;
    CUgraphExec made;
    TRY(capture(&captured));
    TRY(cu.cuGraphInstantiateWithFlags(&made, captured, 0));
    TRY(cu.cuGraphUpload(made, first));
    TRY(cu.cuGraphExecDestroy(made));
    TRY(cu.cuGraphDestroy(captured));
  }
  return CUDA_SUCCESS;
}

/* The capture alone. */
CUresult graph_record1000(long calls) {
  for (long i = 0; i < calls; ++i) {
    CUgraph captured;
    TRY(capture(&captured));
    TRY(cu.cuGraphDestroy(captured));
  }
  return CUDA_SUCCESS;
}
