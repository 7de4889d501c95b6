// Kernels that set the conditions of a graph's branches and loops from a flag in device memory.
// core/embed_ptx.py compiles this file into the core.

// A function of the driver, which links it when it loads the code.
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);

extern "C" __global__ void set_condition(unsigned long long handle, const int* flag) {
  cudaGraphSetConditional(handle, *flag != 0);
}

extern "C" __global__ void set_conditions(unsigned long long handle, unsigned long long otherwise, const int* flag) {
  const unsigned int value = *flag != 0;
  cudaGraphSetConditional(handle, value);
  cudaGraphSetConditional(otherwise, 1 - value);
}
