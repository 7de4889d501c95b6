// Copies and fills of any layout. tools/elements_ptx.py makes the embedded PTX in elements.ptx from this file.

struct Layout {
  long long ndim;
  long long shape[16];
  long long strides[16];
};

__device__ __forceinline__ long long offset_of(const Layout& layout, long long index) {
  long long offset = 0;
#pragma unroll 1
  for (int d = static_cast<int>(layout.ndim) - 1; d > 0; --d) {
    const long long size = layout.shape[d];
    long long rest;
    // 32-bit division takes a fraction of the time.
    if ((static_cast<unsigned long long>(index | size) >> 32) == 0) {
      rest = static_cast<unsigned>(index) / static_cast<unsigned>(size);
    } else {
      rest = index / size;
    }
    offset += (index - rest * size) * layout.strides[d];
    index = rest;
  }
  return offset + index * layout.strides[0];
}

template <class T>
__device__ __forceinline__ void copy(char* dst, const char* src, long long count, long long dst_first,
                                     long long src_first, const Layout& to, const Layout& from) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
#pragma unroll 1
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const T* source = reinterpret_cast<const T*>(src + offset_of(from, src_first + i));
    *reinterpret_cast<T*>(dst + offset_of(to, dst_first + i)) = *source;
  }
}

template <class T>
__device__ __forceinline__ void fill(char* dst, T value, long long count, long long first, const Layout& to) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
#pragma unroll 1
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    *reinterpret_cast<T*>(dst + offset_of(to, first + i)) = value;
  }
}

// Complex double is aligned to 8 bytes only.
struct Wide {
  unsigned long long low, high;
};

#define KERNELS(bytes, type)                                                                              \
  extern "C" __global__ void copy_##bytes(char* dst, const char* src, long long count, long long dst_first, \
                                          long long src_first, Layout to, Layout from) {                  \
    copy<type>(dst, src, count, dst_first, src_first, to, from);                                          \
  }                                                                                                       \
  extern "C" __global__ void fill_##bytes(char* dst, Wide value, long long count, long long first, Layout to) { \
    fill<type>(dst, *reinterpret_cast<const type*>(&value), count, first, to);                            \
  }

KERNELS(1, unsigned char)
KERNELS(2, unsigned short)
KERNELS(4, unsigned int)
KERNELS(8, unsigned long long)
KERNELS(16, Wide)
