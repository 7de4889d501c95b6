"""Kernels written in CUDA C++: compiled when the program runs, found by name, launched in blocks of threads.

This needs a GPU, and cuda-core, which comes with `pip install 'anabranch[cu13]'` or `'anabranch[cu12]'`. Without a GPU
it says so and does nothing.
"""

import numpy as np

import anabranch as ab

SOURCE = r"""
// Each block moves a tile through shared memory, so that both reading and writing go along rows.
template <typename T>
__global__ void transpose(const T* in, T* out, int rows, int columns) {
  extern __shared__ __align__(16) unsigned char memory[];  // of the size that the launch asks for
  T* tile = reinterpret_cast<T*>(memory);
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  if (x < columns && y < rows) tile[threadIdx.y * (TILE + 1) + threadIdx.x] = in[y * columns + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;
  if (x < rows && y < columns) out[y * rows + x] = tile[threadIdx.x * (TILE + 1) + threadIdx.y];
}

extern "C" __global__ void scale(float factor, float* values, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] *= factor;
}
"""
TILE = 16

try:
    device = ab.Device("cuda:0")
except ab.DeviceError as error:
    print(f"CUDA C++ runs on GPUs only, so there is nothing to do here: {error}")
    raise SystemExit(0) from None

module = ab.Module(SOURCE, options=["--std=c++17", f"-DTILE={TILE}"])
transpose = module.get_kernel("transpose<float>")  # a template is named with its arguments
scale = module.get_kernel("scale")
print(transpose)  # knows its parameters: a pointer to const is read and not written
assert [parameter.access for parameter in transpose.parameters] == ["in", "inout", None, None]

rows, columns = 1000, 300
values = np.random.default_rng(0).random((rows, columns), "float32")
with ab.Stream(device, name="transpose"):
    before = ab.array(values)
    after = ab.empty((columns, rows))
    blocks = -(-columns // TILE), -(-rows // TILE)
    tile_bytes = TILE * (TILE + 1) * 4
    ab.launch(transpose, ab.LaunchConfig(blocks, (TILE, TILE), shared_memory=tile_bytes), before, after, rows, columns)
    ab.launch(scale, ab.LaunchConfig(-(-after.size // 256), 256), 2.0, after, after.size)

assert np.array_equal(after.numpy(), 2 * values.T)
registers = transpose.attributes(device).registers
print(f"{transpose.name} takes {registers} registers per thread on {device.name}")
