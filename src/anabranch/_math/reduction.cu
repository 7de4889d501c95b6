// Reductions on GPUs. Elements have three axes: outer ones, which are kept, those that are reduced, and inner ones, which
// are kept. Steps between them are in bytes. The text before this defines, for a reduction and a dtype:
//
//   Element        what the memory holds        load(Element, Int)   as a Total; the Int is its position
//   Total          what is accumulated          combine(Total, Total)
//   Result         what comes out               finish(Total, double)
//   BEGIN(first)   a Total that changes nothing, given the first element's
//
// Long ranges are split over blocks, whose Totals a second launch combines. Which thread reads what depends on sizes
// alone, so a result is the same in each run.

constexpr int threads = 256;
constexpr int lanes = 32;
constexpr int unroll = 4;

// Of the first launch: elements.
template <bool raw>
struct Source {
  typedef Element Item;
  static __device__ Total read(const Item& item, Int position) { return load(item, position); }
};

// Of the second: Totals of the first.
template <>
struct Source<false> {
  typedef Total Item;
  static __device__ Total read(const Item& item, Int) { return item; }
};

template <bool raw>
__device__ Total read(const char* address, Int position) {
  typedef typename Source<raw>::Item Item;
  return Source<raw>::read(*reinterpret_cast<const Item*>(address), position);
}

template <bool last>
__device__ void store(void* out, Int place, Total total, double count) {
  if constexpr (last) {
    static_cast<Result*>(out)[place] = finish(total, count);
  } else {
    static_cast<Total*>(out)[place] = total;
  }
}

// The thread's share of adjacent elements [begin, end) of a row, in words of 16 bytes.
template <bool raw>
__device__ Total adjacent(const char* row, Int begin, Int end, Total total) {
  typedef typename Source<raw>::Item Item;
  constexpr Int width = 16 / sizeof(Item);
  union Word {
    uint4 bits;
    Item items[width];
  };
  const char* start = row + begin * Int(sizeof(Item));
  const Int count = end - begin;
  const Int off = Int(reinterpret_cast<unsigned long long>(start) % 16);
  const Int before = off == 0 ? 0 : (16 - off) / Int(sizeof(Item));
  const Int head = before < count ? before : count;
  const Int words = (count - head) / width;
  const uint4* memory = reinterpret_cast<const uint4*>(start + head * Int(sizeof(Item)));
  if (threadIdx.x < head) total = combine(total, read<raw>(start + threadIdx.x * sizeof(Item), begin + threadIdx.x));
  Total parts[unroll];
  parts[0] = total;
  // Where nothing is neutral, a total may be combined with itself.
#pragma unroll
  for (int u = 1; u < unroll; ++u) parts[u] = BEGIN(total);
  for (Int k = threadIdx.x; k < words; k += threads * unroll) {
    Word loaded[unroll];
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      if (k + u * threads < words) loaded[u].bits = __ldg(memory + k + u * threads);
    }
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      if (k + u * threads >= words) continue;
#pragma unroll
      for (int w = 0; w < width; ++w) {
        const Int position = begin + head + (k + u * threads) * width + w;
        parts[u] = combine(parts[u], Source<raw>::read(loaded[u].items[w], position));
      }
    }
  }
  const Int rest = head + words * width + threadIdx.x;
  if (rest < count) parts[0] = combine(parts[0], read<raw>(start + rest * Int(sizeof(Item)), begin + rest));
#pragma unroll
  for (int u = 1; u < unroll; ++u) parts[0] = combine(parts[0], parts[u]);
  return parts[0];
}

// The thread's share of elements [begin, end) of a row, a `step` apart, of `threads` threads that share them.
template <bool raw>
__device__ Total apart(const char* row, Int step, Int begin, Int end, Int thread, Int of, Total total) {
  for (Int k = begin + thread; k < end; k += of * unroll) {
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      if (k + u * of < end) total = combine(total, read<raw>(row + (k + u * of) * step, k + u * of));
    }
  }
  return total;
}

// Combines a warp's totals, which are adjacent, in the first.
__device__ void combine_warp(Total* totals, int lane) {
  __syncwarp();
  for (int half = lanes / 2; half > 0; half /= 2) {
    if (lane < half) totals[lane] = combine(totals[lane], totals[lane + half]);
    __syncwarp();
  }
}

// Combines a block's totals in the first, for thread 0: each warp its own, then the first warp those of all. A block
// waits for itself once.
__device__ void combine_block(Total* totals) {
  constexpr int warps = threads / lanes;
  const int lane = threadIdx.x % lanes;
  combine_warp(totals + threadIdx.x - lane, lane);
  __syncthreads();
  if (threadIdx.x >= lanes) return;
  for (int half = warps / 2; half > 0; half /= 2) {
    if (lane < half) totals[lane * lanes] = combine(totals[lane * lanes], totals[(lane + half) * lanes]);
    __syncwarp();
  }
}

template <bool raw, bool last>
__device__ void reduce_rows(const void* x, Int row_step, Int step, Int rows, Int count, Int size, double divisor,
                            void* out) {
  typedef typename Source<raw>::Item Item;
  __shared__ Total totals[threads];
  const Int begin = blockIdx.x * size;
  const Int end = begin + size < count ? begin + size : count;
  for (Int row = blockIdx.y; row < rows; row += gridDim.y) {
    const char* memory = static_cast<const char*>(x) + row * row_step;
    Total total = BEGIN(read<raw>(memory + begin * step, begin));
    bool done = false;
    if constexpr (16 % sizeof(Item) == 0) {
      if (step == sizeof(Item) && reinterpret_cast<unsigned long long>(memory) % sizeof(Item) == 0) {
        total = adjacent<raw>(memory, begin, end, total);
        done = true;
      }
    }
    if (!done) total = apart<raw>(memory, step, begin, end, threadIdx.x, threads, total);
    totals[threadIdx.x] = total;
    combine_block(totals);
    if (threadIdx.x == 0) store<last>(out, row * gridDim.x + blockIdx.x, totals[0], divisor);
    __syncthreads();
  }
}

// A warp per row.
template <bool raw, bool last>
__device__ void reduce_short_rows(const void* x, Int row_step, Int step, Int rows, Int count, Int, double divisor,
                                  void* out) {
  __shared__ Total totals[threads];
  const int lane = threadIdx.x % lanes;
  Total* own = totals + threadIdx.x - lane;
  const Int in_grid = Int(gridDim.x) * (threads / lanes);
  for (Int row = Int(blockIdx.x) * (threads / lanes) + threadIdx.x / lanes; row < rows; row += in_grid) {
    const char* memory = static_cast<const char*>(x) + row * row_step;
    own[lane] = apart<raw>(memory, step, 0, count, lane, lanes, BEGIN(read<raw>(memory, 0)));
    combine_warp(own, lane);
    if (lane == 0) store<last>(out, row, own[0], divisor);
    __syncwarp();
  }
}

// Blocks of 32 by 8: the columns of a warp are neighbours, its 8 warps share the rows.
template <bool raw, bool last>
__device__ void reduce_columns(const void* x, Int outer_step, Int step, Int inner_step, Int outer, Int count, Int inner,
                               Int size, double divisor, void* out) {
  constexpr int groups = threads / lanes;
  __shared__ Total totals[groups][lanes];
  const Int column = Int(blockIdx.x) * lanes + threadIdx.x;
  const Int begin = blockIdx.y * size;
  const Int end = begin + size < count ? begin + size : count;
  for (Int plane = blockIdx.z; plane < outer; plane += gridDim.z) {
    if (column < inner) {
      const char* memory = static_cast<const char*>(x) + plane * outer_step + column * inner_step;
      const Total first = BEGIN(read<raw>(memory + begin * step, begin));
      totals[threadIdx.y][threadIdx.x] = apart<raw>(memory, step, begin, end, threadIdx.y, groups, first);
    }
    __syncthreads();
    for (int half = groups / 2; half > 0; half /= 2) {
      if (column < inner && threadIdx.y < half) {
        Total* mine = &totals[threadIdx.y][threadIdx.x];
        *mine = combine(*mine, totals[threadIdx.y + half][threadIdx.x]);
      }
      __syncthreads();
    }
    if (column < inner && threadIdx.y == 0) {
      store<last>(out, (plane * gridDim.y + blockIdx.y) * inner + column, totals[0][threadIdx.x], divisor);
    }
    __syncthreads();
  }
}
