// The kernels in C++ for the CPU, one function each, run by OpenMP on all cores. Called as
//
//   void name(const int64_t* sizes, const double* scalars, void* const* arrays, const int64_t* strides)
//
// `sizes` are those of the index space; `strides`, in elements, of the axes of one array after the other. Complex numbers
// are multiplied as Python kernels do it: with no second look at results that are not numbers.
#include <cstdint>

using Sizes = const std::int64_t*;
using Scalars = const double*;
using Arrays = void* const*;
using Strides = const std::int64_t*;

#define KERNEL(name) extern "C" void name(Sizes sizes, Scalars scalars, Arrays arrays, Strides strides)

struct Complex {
  float re, im;
};
static inline Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
static inline Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }

template <class T, class A>
static void saxpy(Sizes sizes, A alpha, Arrays arrays) {
  const std::int64_t n = sizes[0];
  const T* __restrict__ x = static_cast<const T*>(arrays[0]);
  T* __restrict__ y = static_cast<T*>(arrays[1]);
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(alpha * x[i] + y[i]);
}

KERNEL(saxpy_float32) { saxpy<float>(sizes, static_cast<float>(scalars[0]), arrays); }
KERNEL(saxpy_float64) { saxpy<double>(sizes, scalars[0], arrays); }
KERNEL(saxpy_mixed) { saxpy<float>(sizes, scalars[0], arrays); }
KERNEL(saxpy_complex64) {
  saxpy<Complex>(sizes, Complex{static_cast<float>(scalars[0]), static_cast<float>(scalars[1])}, arrays);
}

KERNEL(five_point) {
  const std::int64_t n = sizes[0], m = sizes[1];
  const float* __restrict__ u = static_cast<const float*>(arrays[0]);
  float* __restrict__ v = static_cast<float*>(arrays[1]);
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 1; i < n - 1; ++i)
    for (std::int64_t j = 1; j < m - 1; ++j) {
      const std::int64_t at = i * m + j;
      v[at] = 0.25f * (u[at - m] + u[at + m] + u[at - 1] + u[at + 1]);
    }
}

KERNEL(nine_point) {
  const std::int64_t n = sizes[0], m = sizes[1];
  const float* __restrict__ u = static_cast<const float*>(arrays[0]);
  float* __restrict__ v = static_cast<float*>(arrays[1]);
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 1; i < n - 1; ++i)
    for (std::int64_t j = 1; j < m - 1; ++j) {
      const std::int64_t at = i * m + j;
      const float straight = u[at - m] + u[at + m] + u[at - 1] + u[at + 1];
      const float diagonal = u[at - m - 1] + u[at - m + 1] + u[at + m - 1] + u[at + m + 1];
      v[at] = 0.125f * (straight + diagonal);
    }
}

KERNEL(seven_point) {
  const std::int64_t n = sizes[0], m = sizes[1], p = sizes[2];
  const float* __restrict__ u = static_cast<const float*>(arrays[0]);
  float* __restrict__ v = static_cast<float*>(arrays[1]);
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 1; i < n - 1; ++i)
    for (std::int64_t j = 1; j < m - 1; ++j)
      for (std::int64_t k = 1; k < p - 1; ++k) {
        const std::int64_t at = (i * m + j) * p + k;
        const float around = u[at - m * p] + u[at + m * p] + u[at - p] + u[at + p] + u[at - 1] + u[at + 1];
        v[at] = 0.125f * (around + u[at] + u[at]);
      }
}

KERNEL(transposed) {
  const std::int64_t n = sizes[0], m = sizes[1];
  const float* __restrict__ u = static_cast<const float*>(arrays[0]);
  float* __restrict__ v = static_cast<float*>(arrays[1]);
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < m; ++j) v[i * m + j] = u[j * n + i];
}

template <class I>
static void gather(Sizes sizes, Arrays arrays) {
  const std::int64_t n = sizes[0];
  const float* __restrict__ x = static_cast<const float*>(arrays[0]);
  const I* __restrict__ index = static_cast<const I*>(arrays[1]);
  float* __restrict__ y = static_cast<float*>(arrays[2]);
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[index[i]];
}

KERNEL(gather_int32) { gather<std::int32_t>(sizes, arrays); }
KERNEL(gather_int64) { gather<std::int64_t>(sizes, arrays); }

static void copied(Sizes sizes, Arrays arrays, Strides strides) {
  const std::int64_t n = sizes[0], step = strides[0];
  const float* __restrict__ x = static_cast<const float*>(arrays[0]);
  float* __restrict__ y = static_cast<float*>(arrays[1]);
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i * step];
}

KERNEL(step2) { copied(sizes, arrays, strides); }
KERNEL(backwards) { copied(sizes, arrays, strides); }

KERNEL(rows) {
  const std::int64_t n = sizes[0], m = sizes[1], row = strides[0], column = strides[1];
  const float* __restrict__ x = static_cast<const float*>(arrays[0]);
  float* __restrict__ y = static_cast<float*>(arrays[1]);
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < m; ++j) y[i * m + j] = x[i * row + j * column];
}

KERNEL(histogram) {
  const std::int64_t n = sizes[0];
  const std::int32_t* __restrict__ x = static_cast<const std::int32_t*>(arrays[0]);
  std::int32_t* __restrict__ bins = static_cast<std::int32_t*>(arrays[1]);
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < n; ++i) __atomic_fetch_add(&bins[x[i]], 1, __ATOMIC_RELAXED);
}

KERNEL(mandelbrot) {
  const std::int64_t n = sizes[0], m = sizes[1];
  std::int32_t* __restrict__ counts = static_cast<std::int32_t*>(arrays[0]);
#pragma omp parallel for schedule(dynamic, 4)
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < m; ++j) {
      const double x0 = 3.0 * j / m - 2.0, y0 = 2.0 * i / n - 1.0;
      double x = 0, y = 0;
      int count = 0;
      while (count < LIMIT && x * x + y * y <= 4.0) {
        const double next = x * x - y * y + x0;
        y = 2.0 * x * y + y0;
        x = next;
        ++count;
      }
      counts[i * m + j] = count;
    }
}
