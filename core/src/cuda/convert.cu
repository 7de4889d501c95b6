// Copies that convert, of any layout. core/embed_ptx.py compiles this file into the core.

#include "offset.cuh"

// As in anabranch/memory/layout.hpp.
enum Type {
  boolean = 1,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  float32,
  float64,
  complex64,
  complex128,
};

__device__ __forceinline__ float from_half(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

// Rounded once. Integers are rounded to single precision first, as NumPy does.
__device__ __forceinline__ unsigned short to_half(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
__device__ __forceinline__ unsigned short to_half(double value) {
  unsigned short bits;
  asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(value));
  return bits;
}
__device__ __forceinline__ unsigned short to_half(long long value) { return to_half(static_cast<float>(value)); }
__device__ __forceinline__ unsigned short to_half(unsigned long long value) {
  return to_half(static_cast<float>(value));
}

// Towards zero; the low bits are the narrower integers.
__device__ __forceinline__ long long whole(long long value) { return value; }
__device__ __forceinline__ long long whole(unsigned long long value) { return static_cast<long long>(value); }
__device__ __forceinline__ long long whole(float value) { return value != value ? 0 : static_cast<long long>(value); }
__device__ __forceinline__ long long whole(double value) { return value != value ? 0 : static_cast<long long>(value); }

template <class V>
__device__ __forceinline__ unsigned long long large(V value) {
  return value > 0 ? static_cast<unsigned long long>(value) : static_cast<unsigned long long>(whole(value));
}

template <class T, class V>
__device__ __forceinline__ void put(char* at, V value) {
  *reinterpret_cast<T*>(at) = static_cast<T>(value);
}

template <class T, class V, class I>
__device__ __forceinline__ void put_pair(char* at, V real, I imaginary) {
  reinterpret_cast<T*>(at)[0] = static_cast<T>(real);
  reinterpret_cast<T*>(at)[1] = static_cast<T>(imaginary);
}

template <class V, class I>
__device__ __forceinline__ void store(char* at, int type, V value, I imaginary) {
  switch (type) {
    case boolean:
      return put<unsigned char>(at, value != 0 || imaginary != 0);
    case int8:
    case uint8:
      return put<unsigned char>(at, whole(value));
    case int16:
    case uint16:
      return put<unsigned short>(at, whole(value));
    case int32:
    case uint32:
      return put<unsigned>(at, whole(value));
    case int64:
      return put<long long>(at, whole(value));
    case uint64:
      return put<unsigned long long>(at, large(value));
    case float16:
      return put<unsigned short>(at, to_half(value));
    case float32:
      return put<float>(at, value);
    case float64:
      return put<double>(at, value);
    case complex64:
      return put_pair<float>(at, value, imaginary);
    default:
      return put_pair<double>(at, value, imaginary);
  }
}

__device__ __forceinline__ void convert_one(char* dst, int dst_type, const char* src, int src_type) {
  switch (src_type) {
    case boolean:
      return store(dst, dst_type, static_cast<long long>(*reinterpret_cast<const unsigned char*>(src) != 0), 0);
    case int8:
      return store(dst, dst_type, static_cast<long long>(*reinterpret_cast<const signed char*>(src)), 0);
    case int16:
      return store(dst, dst_type, static_cast<long long>(*reinterpret_cast<const short*>(src)), 0);
    case int32:
      return store(dst, dst_type, static_cast<long long>(*reinterpret_cast<const int*>(src)), 0);
    case int64:
      return store(dst, dst_type, *reinterpret_cast<const long long*>(src), 0);
    case uint8:
      return store(dst, dst_type, static_cast<long long>(*reinterpret_cast<const unsigned char*>(src)), 0);
    case uint16:
      return store(dst, dst_type, static_cast<long long>(*reinterpret_cast<const unsigned short*>(src)), 0);
    case uint32:
      return store(dst, dst_type, static_cast<long long>(*reinterpret_cast<const unsigned*>(src)), 0);
    case uint64:
      return store(dst, dst_type, *reinterpret_cast<const unsigned long long*>(src), 0);
    case float16:
      return store(dst, dst_type, from_half(*reinterpret_cast<const unsigned short*>(src)), 0);
    case float32:
      return store(dst, dst_type, *reinterpret_cast<const float*>(src), 0);
    case float64:
      return store(dst, dst_type, *reinterpret_cast<const double*>(src), 0);
    case complex64:
      return store(dst, dst_type, reinterpret_cast<const float*>(src)[0], reinterpret_cast<const float*>(src)[1]);
    default:
      return store(dst, dst_type, reinterpret_cast<const double*>(src)[0], reinterpret_cast<const double*>(src)[1]);
  }
}

extern "C" __global__ void convert(char* dst, const char* src, long long count, long long dst_first,
                                   long long src_first, Layout to, Layout from, int dst_type, int src_type) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
#pragma unroll 1
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    convert_one(dst + offset_of(to, dst_first + i), dst_type, src + offset_of(from, src_first + i), src_type);
  }
}
