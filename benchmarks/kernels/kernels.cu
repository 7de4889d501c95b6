// The kernels in CUDA C++: a thread for each index, the last axis along x, all arithmetic on indices in 32 bits, which 64M
// elements allow. Complex numbers are multiplied as Python kernels do it: with no second look at results that are not
// numbers. Strides are in elements.

struct alignas(8) Complex {
  float re, im;
};
__device__ Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
__device__ Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }

#define KERNEL(name) extern "C" __global__ void name
#define INDEX_X (int)(blockIdx.x * blockDim.x + threadIdx.x)
#define INDEX_Y (int)(blockIdx.y * blockDim.y + threadIdx.y)
#define INDEX_Z (int)(blockIdx.z * blockDim.z + threadIdx.z)

template <class T, class A>
__device__ void saxpy(int n, A alpha, const T* __restrict__ x, T* __restrict__ y) {
  const int i = INDEX_X;
  if (i < n) y[i] = alpha * x[i] + y[i];
}

KERNEL(saxpy_float32)(int n, float alpha, const float* __restrict__ x, float* __restrict__ y) { saxpy(n, alpha, x, y); }
KERNEL(saxpy_float64)(int n, double alpha, const double* __restrict__ x, double* __restrict__ y) {
  saxpy(n, alpha, x, y);
}
KERNEL(saxpy_mixed)(int n, double alpha, const float* __restrict__ x, float* __restrict__ y) { saxpy(n, alpha, x, y); }
KERNEL(saxpy_complex64)(int n, float re, float im, const void* __restrict__ x, void* __restrict__ y) {
  saxpy(n, Complex{re, im}, static_cast<const Complex*>(x), static_cast<Complex*>(y));
}

KERNEL(five_point)(int n, int m, const float* __restrict__ u, float* __restrict__ v) {
  const int i = INDEX_Y, j = INDEX_X, at = i * m + j;
  if (0 < i && i < n - 1 && 0 < j && j < m - 1) v[at] = 0.25f * (u[at - m] + u[at + m] + u[at - 1] + u[at + 1]);
}

KERNEL(nine_point)(int n, int m, const float* __restrict__ u, float* __restrict__ v) {
  const int i = INDEX_Y, j = INDEX_X, at = i * m + j;
  if (0 < i && i < n - 1 && 0 < j && j < m - 1) {
    const float straight = u[at - m] + u[at + m] + u[at - 1] + u[at + 1];
    const float diagonal = u[at - m - 1] + u[at - m + 1] + u[at + m - 1] + u[at + m + 1];
    v[at] = 0.125f * (straight + diagonal);
  }
}

KERNEL(seven_point)(int n, int m, int p, const float* __restrict__ u, float* __restrict__ v) {
  const int i = INDEX_Z, j = INDEX_Y, k = INDEX_X, at = (i * m + j) * p + k;
  if (0 < i && i < n - 1 && 0 < j && j < m - 1 && 0 < k && k < p - 1) {
    const float around = u[at - m * p] + u[at + m * p] + u[at - p] + u[at + p] + u[at - 1] + u[at + 1];
    v[at] = 0.125f * (around + u[at] + u[at]);
  }
}

KERNEL(transposed)(int n, int m, const float* __restrict__ u, float* __restrict__ v) {
  const int i = INDEX_Y, j = INDEX_X;
  if (i < n && j < m) v[i * m + j] = u[j * n + i];
}

template <class I>
__device__ void gather(int n, const float* __restrict__ x, const I* __restrict__ index, float* __restrict__ y) {
  const int i = INDEX_X;
  if (i < n) y[i] = x[index[i]];
}

KERNEL(gather_int32)(int n, const float* __restrict__ x, const int* __restrict__ index, float* __restrict__ y) {
  gather(n, x, index, y);
}
KERNEL(gather_int64)(int n, const float* __restrict__ x, const long long* __restrict__ index, float* __restrict__ y) {
  gather(n, x, index, y);
}

__device__ void copied(int n, int step, const float* __restrict__ x, float* __restrict__ y) {
  const int i = INDEX_X;
  if (i < n) y[i] = x[i * step];
}

KERNEL(step2)(int n, int step, const float* __restrict__ x, float* __restrict__ y) { copied(n, step, x, y); }
KERNEL(backwards)(int n, int step, const float* __restrict__ x, float* __restrict__ y) { copied(n, step, x, y); }

KERNEL(rows)(int n, int m, int row, int column, const float* __restrict__ x, float* __restrict__ y) {
  const int i = INDEX_Y, j = INDEX_X;
  if (i < n && j < m) y[i * m + j] = x[i * row + j * column];
}

KERNEL(histogram)(int n, const int* __restrict__ x, int* __restrict__ bins) {
  const int i = INDEX_X;
  if (i < n) atomicAdd(&bins[x[i]], 1);
}

KERNEL(mandelbrot)(int n, int m, int* __restrict__ counts) {
  const int i = INDEX_Y, j = INDEX_X;
  if (i >= n || j >= m) return;
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

// Blocks of 32 x 8 threads, which copy four elements each.
KERNEL(tiles)(int, int m, const float* __restrict__ u, float* __restrict__ v) {
  __shared__ float tile[32][33];
  const int n = 4 * gridDim.y * blockDim.y, top = 32 * blockIdx.y, left = 32 * blockIdx.x;
  const int row = threadIdx.y, column = threadIdx.x;
  for (int k = 0; k < 32; k += 8) tile[row + k][column] = u[(left + row + k) * n + top + column];
  __syncthreads();
  for (int k = 0; k < 32; k += 8) v[(top + row + k) * m + left + column] = tile[column][row + k];
}

KERNEL(block_sums)(int, const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float part[BLOCK];
  const int place = threadIdx.x;
  part[place] = x[INDEX_X];
  for (int step = BLOCK / 2; step > 0; step /= 2) {
    __syncthreads();
    if (place < step) part[place] += part[place + step];
  }
  if (place == 0) y[blockIdx.x] = part[0];
}
