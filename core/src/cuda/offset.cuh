// The place of an element in an array of any layout.

struct Layout {
  long long ndim;
  long long shape[16];
  long long strides[16];
};

// Neither number is negative. 32-bit division takes a fraction of the time.
__device__ __forceinline__ long long divide(long long number, long long by) {
  if ((static_cast<unsigned long long>(number | by) >> 32) == 0) {
    return static_cast<unsigned>(number) / static_cast<unsigned>(by);
  }
  return number / by;
}

__device__ __forceinline__ long long offset_of(const Layout& layout, long long index) {
  long long offset = 0;
#pragma unroll 1
  for (int d = static_cast<int>(layout.ndim) - 1; d > 0; --d) {
    const long long size = layout.shape[d];
    const long long rest = divide(index, size);
    offset += (index - rest * size) * layout.strides[d];
    index = rest;
  }
  return offset + index * layout.strides[0];
}
