// Copies and fills of runs of bytes that begin on multiples of 16: one thread for each 16 bytes, then one for each
// remaining byte. Separate from elements.cu, because opening a device waits for the driver to compile this file.
// core/embed_ptx.py compiles this file into the core.

extern "C" __global__ void copy_run(uint4* dst, const uint4* src, long long bytes) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long words = bytes / 16;
  if (i < words) {
    dst[i] = src[i];
  } else if (const long long at = 16 * words + (i - words); at < bytes) {
    reinterpret_cast<char*>(dst)[at] = reinterpret_cast<const char*>(src)[at];
  }
}

extern "C" __global__ void fill_run(uint4* dst, uint4 value, long long bytes) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long words = bytes / 16;
  if (i < words) {
    dst[i] = value;
  } else if (const long long at = 16 * words + (i - words); at < bytes) {
    reinterpret_cast<char*>(dst)[at] = reinterpret_cast<const char*>(&value)[i - words];
  }
}
