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

// The share of a thread, of a team of threads, of adjacent elements [begin, end) of a row, in words of 16 bytes.
template <bool raw, int team>
__device__ Total adjacent(const char* row, Int begin, Int end, int thread, Total total) {
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
  if (thread < head) total = combine(total, read<raw>(start + thread * sizeof(Item), begin + thread));
  Total parts[unroll];
  parts[0] = total;
  // Where nothing is neutral, a total may be combined with itself.
#pragma unroll
  for (int u = 1; u < unroll; ++u) parts[u] = BEGIN(total);
  Word loaded[unroll];
  const auto add = [&](int u, Int k) {
#pragma unroll
    for (int w = 0; w < width; ++w) {
      parts[u] = combine(parts[u], Source<raw>::read(loaded[u].items[w], begin + head + k * width + w));
    }
  };
  // Without a question about each word, all loads of a round are under way at once.
  Int k = thread;
  for (; k + (unroll - 1) * team < words; k += team * unroll) {
#pragma unroll
    for (int u = 0; u < unroll; ++u) loaded[u].bits = __ldg(memory + k + u * team);
#pragma unroll
    for (int u = 0; u < unroll; ++u) add(u, k + u * team);
  }
#pragma unroll
  for (int u = 0; u < unroll; ++u) {
    if (k + u * team < words) loaded[u].bits = __ldg(memory + k + u * team);
  }
#pragma unroll
  for (int u = 0; u < unroll; ++u) {
    if (k + u * team < words) add(u, k + u * team);
  }
  const Int rest = head + words * width + thread;
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

// The share of a thread of elements [begin, end) of a row.
template <bool raw, int team>
__device__ Total share(const char* row, Int step, Int begin, Int end, int thread) {
  typedef typename Source<raw>::Item Item;
  const Total total = BEGIN(read<raw>(row + begin * step, begin));
  if constexpr (16 % sizeof(Item) == 0) {
    if (step == sizeof(Item) && reinterpret_cast<unsigned long long>(row) % sizeof(Item) == 0)
      return adjacent<raw, team>(row, begin, end, thread, total);
  }
  return apart<raw>(row, step, begin, end, thread, team, total);
}

// The total of the lane that is `by` further on.
__device__ Total of_lane(const Total& total, int by) {
  union Words {
    Total total;
    unsigned int words[(sizeof(Total) + 3) / 4];
    __device__ Words() {}
  } words;
  words.total = total;
#pragma unroll
  for (unsigned int& word : words.words) word = __shfl_down_sync(0xffffffff, word, by);
  return words.total;
}

// Combines the totals of the first `count` lanes for the first one. All lanes of the warp call it.
template <int count>
__device__ Total combine_lanes(Total total) {
#pragma unroll
  for (int half = count / 2; half > 0; half /= 2) total = combine(total, of_lane(total, half));
  return total;
}

// Combines a team's totals for its first thread: each warp its own, then the first warp those of all. A team of several
// warps is a block, which waits for itself twice.
template <int team>
__device__ Total combine_team(Total total, int thread) {
  total = combine_lanes<lanes>(total);
  if constexpr (team > lanes) {
    constexpr int warps = team / lanes;
    __shared__ Total totals[warps];
    if (thread % lanes == 0) totals[thread / lanes] = total;
    __syncthreads();
    if (thread < lanes) total = combine_lanes<warps>(totals[thread % warps]);
    __syncthreads();
  }
  return total;
}

// A block per range of a row.
template <bool raw, bool last>
__device__ void reduce_rows(const void* x, Int row_step, Int step, Int rows, Int count, Int size, double divisor,
                            void* out) {
  const Int begin = blockIdx.x * size;
  const Int end = begin + size < count ? begin + size : count;
  for (Int row = blockIdx.y; row < rows; row += gridDim.y) {
    const char* memory = static_cast<const char*>(x) + row * row_step;
    const Total own = share<raw, threads>(memory, step, begin, end, threadIdx.x);
    const Total total = combine_team<threads>(own, threadIdx.x);
    if (threadIdx.x == 0) store<last>(out, row * gridDim.x + blockIdx.x, total, divisor);
  }
}

// A team of threads per row. A block is one team, or several teams of one warp each.
template <bool raw, bool last, int team>
__device__ void reduce_short_rows(const void* x, Int row_step, Int step, Int rows, Int count, Int, double divisor,
                                  void* out) {
  const int thread = threadIdx.x % team;
  const Int teams = blockDim.x / team;
  for (Int row = blockIdx.x * teams + threadIdx.x / team; row < rows; row += gridDim.x * teams) {
    const char* memory = static_cast<const char*>(x) + row * row_step;
    const Total total = combine_team<team>(share<raw, team>(memory, step, 0, count, thread), thread);
    if (thread == 0) store<last>(out, row, total, divisor);
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
