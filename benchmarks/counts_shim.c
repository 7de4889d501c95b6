/* What the counted process needs in native code: to tell callgrind what to count, and a kernel that no compiler has to make. */

#include <stdint.h>
#include <valgrind/callgrind.h>

/* From here to the next call, or from the last one to here, what the calling thread does is counted. */
void toggle(void) { CALLGRIND_TOGGLE_COLLECT; }

void start(void) { CALLGRIND_START_INSTRUMENTATION; }

/* Writes what was counted since the last dump under a name. */
void dump(const char* name) { CALLGRIND_DUMP_STATS_AT(name); }

int64_t kernel(int64_t begin, int64_t end, const int64_t* dims, const void* arguments) {
  (void)begin, (void)dims, (void)arguments;
  return end;
}
