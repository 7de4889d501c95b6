/* What a collective over NCCL costs a program in C. Compiled when benchmarks/distributed_nccl.py needs it. */
#include <stddef.h>
#include <time.h>

typedef int all_reduce_function(const void*, void*, size_t, int, int, void*, void*);

enum { float32 = 7, sum = 0 };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Seconds of a call that enqueues a sum in place; negative if one fails. */
double all_reduce_seconds(all_reduce_function* all_reduce, void* data, size_t count, void* communicator, void* stream,
                          int calls) {
  const double begin = now();
  for (int i = 0; i < calls; ++i)
    if (all_reduce(data, data, count, float32, sum, communicator, stream) != 0) return -1;
  return (now() - begin) / calls;
}
