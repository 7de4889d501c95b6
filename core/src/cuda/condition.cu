// What sets the conditions of a graph's branches and loops, from a flag in the device's memory. The embedded PTX in
// condition.ptx is made from this file by tools/elements_ptx.py.

// The driver's own, which it links when the code is loaded.
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);

extern "C" __global__ void set_condition(unsigned long long handle, const int* flag) {
  cudaGraphSetConditional(handle, *flag != 0);
}

extern "C" __global__ void set_conditions(unsigned long long handle, unsigned long long otherwise, const int* flag) {
  const unsigned int value = *flag != 0;
  cudaGraphSetConditional(handle, value);
  cudaGraphSetConditional(otherwise, 1 - value);
}
