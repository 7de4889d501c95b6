// Copies and fills of any layout. core/embed_ptx.py compiles this file into the core.

#include "offset.cuh"

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

// As the host orders a layout for tiles: first the axis along which the destination's elements are adjacent, then that of
// the source.
struct Tiles {
  long long ndim;
  long long size[16];
  long long to[16];
  long long from[16];
};

constexpr int tile_threads = 256;  // of a block

// In square tiles through shared memory, so that a warp reads and writes adjacent elements. All loads of a thread come
// before its first store: that many bytes in flight are what the memory's bandwidth takes.
template <class T>
__device__ __forceinline__ void copy_tiles(char* dst, const char* src, long long tiles, const Tiles& axes) {
  constexpr int side = sizeof(T) > 8 ? 32 : 64;  // as in transfer.cpp
  constexpr int step = tile_threads / side;
  constexpr int rounds = side / step;
  // A word or an element more than a row keeps a column's elements in different banks.
  constexpr int pitch = side + (sizeof(T) < 4 ? 4 / static_cast<int>(sizeof(T)) : 1);
  __shared__ T tile[side][pitch];
  const int x = static_cast<int>(threadIdx.x) % side;
  const int y = static_cast<int>(threadIdx.x) / side;
  const long long across = (axes.size[0] + side - 1) / side;
  const long long along = (axes.size[1] + side - 1) / side;
  for (long long at = blockIdx.x; at < tiles; at += gridDim.x) {
    const long long line = divide(at, across);
    const long long column = (at - line * across) * side;
    long long rest = divide(line, along);
    const long long row = (line - rest * along) * side;
    char* to = dst + (column + x) * axes.to[0] + (row + y) * axes.to[1];
    const char* from = src + (column + y) * axes.from[0] + (row + x) * axes.from[1];
#pragma unroll 1
    for (int d = 2; d < static_cast<int>(axes.ndim); ++d) {
      const long long outer = divide(rest, axes.size[d]);
      const long long index = rest - outer * axes.size[d];
      rest = outer;
      to += index * axes.to[d];
      from += index * axes.from[d];
    }
    const long long columns = axes.size[0] - column;
    const long long rows = axes.size[1] - row;
    const long long from_step = step * axes.from[0];
    const long long to_step = step * axes.to[1];
    T held[rounds];
    if (columns >= side && rows >= side) {
#pragma unroll
      for (int k = 0; k < rounds; ++k) held[k] = *reinterpret_cast<const T*>(from + k * from_step);
#pragma unroll
      for (int k = 0; k < rounds; ++k) tile[y + k * step][x] = held[k];
      __syncthreads();
#pragma unroll
      for (int k = 0; k < rounds; ++k) *reinterpret_cast<T*>(to + k * to_step) = tile[x][y + k * step];
    } else {
#pragma unroll
      for (int k = 0; k < rounds; ++k) {
        if (x < rows && y + k * step < columns) held[k] = *reinterpret_cast<const T*>(from + k * from_step);
      }
#pragma unroll
      for (int k = 0; k < rounds; ++k) {
        if (x < rows && y + k * step < columns) tile[y + k * step][x] = held[k];
      }
      __syncthreads();
#pragma unroll
      for (int k = 0; k < rounds; ++k) {
        if (x < columns && y + k * step < rows) *reinterpret_cast<T*>(to + k * to_step) = tile[x][y + k * step];
      }
    }
    __syncthreads();
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
  }                                                                                                       \
  extern "C" __global__ void tiles_##bytes(char* dst, const char* src, long long tiles, Tiles axes) {       \
    copy_tiles<type>(dst, src, tiles, axes);                                                              \
  }

KERNELS(1, unsigned char)
KERNELS(2, unsigned short)
KERNELS(4, unsigned int)
KERNELS(8, unsigned long long)
KERNELS(16, Wide)

// For rows of bytes that are a multiple of 16 and aligned to it.
extern "C" __global__ void copy_rows_16(char* dst, const char* src, long long count, long long dst_first,
                                     long long src_first, Layout to, Layout from) {
  copy<uint4>(dst, src, count, dst_first, src_first, to, from);
}
