/* NCCL for one rank, on streams of the simulated driver: what a rank sends, it receives. `nccl_calls()` returns the
 * calls since the last question, as lines of the function and its arguments but the communicator.
 * FAKE_NCCL_FAILS=ncclReduce makes a function answer with an error. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { invalid_usage = 5, most_messages = 64 };

static char lines[1 << 14], told[1 << 14];

const char* nccl_calls(void) {
  memcpy(told, lines, sizeof lines);
  lines[0] = 0;
  return told;
}

static int note(const char* name, const char* format, ...) {
  char line[256];
  va_list values;
  va_start(values, format);
  vsnprintf(line, sizeof line, format, values);
  va_end(values);
  const size_t used = strlen(lines);
  snprintf(lines + used, sizeof lines - used, "%s%s\n", name, line);
  const char* fails = getenv("FAKE_NCCL_FAILS");
  return fails && strcmp(fails, name) == 0 ? invalid_usage : 0;
}

static unsigned long long at(const void* pointer) { return (unsigned long long)(uintptr_t)pointer; }

static int put_copy(const void* from, void* to, size_t count, int type, void* stream) {
  static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8};
  static int (*copy)(uint64_t, uint64_t, size_t, void*);
  if (!copy) {
    int (*find)(const char*, void**, int, uint64_t, int*) = (int (*)(const char*, void**, int, uint64_t, int*))dlsym(
        dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress_v2");
    find("cuMemcpyAsync", (void**)&copy, 12000, 0, NULL);
  }
  return from == to ? 0 : copy(at(to), at(from), count * sizes[type], stream);
}

int ncclAllReduce(const void* from, void* to, size_t count, int type, int op, void* comm, void* stream) {
  (void)comm;
  const int wrong = note(__func__, " %llx %llx %zu %d %d %llx", at(from), at(to), count, type, op, at(stream));
  return wrong ? wrong : put_copy(from, to, count, type, stream);
}

int ncclReduceScatter(const void* from, void* to, size_t count, int type, int op, void* comm, void* stream) {
  (void)comm;
  const int wrong = note(__func__, " %llx %llx %zu %d %d %llx", at(from), at(to), count, type, op, at(stream));
  return wrong ? wrong : put_copy(from, to, count, type, stream);
}

int ncclReduce(const void* from, void* to, size_t count, int type, int op, int root, void* comm, void* stream) {
  (void)comm;
  const int wrong = note(__func__, " %llx %llx %zu %d %d %d %llx", at(from), at(to), count, type, op, root, at(stream));
  return wrong ? wrong : put_copy(from, to, count, type, stream);
}

int ncclBroadcast(const void* from, void* to, size_t count, int type, int root, void* comm, void* stream) {
  (void)comm;
  const int wrong = note(__func__, " %llx %llx %zu %d %d %llx", at(from), at(to), count, type, root, at(stream));
  return wrong ? wrong : put_copy(from, to, count, type, stream);
}

int ncclAllGather(const void* from, void* to, size_t count, int type, void* comm, void* stream) {
  (void)comm;
  const int wrong = note(__func__, " %llx %llx %zu %d %llx", at(from), at(to), count, type, at(stream));
  return wrong ? wrong : put_copy(from, to, count, type, stream);
}

/* Messages of a group, in their order. */
static struct message {
  const void* from;
  void* to;
  size_t count;
  int type;
  void* stream;
} sent[most_messages], received[most_messages];
static size_t sent_count, received_count;

int ncclSend(const void* from, size_t count, int type, int peer, void* comm, void* stream) {
  (void)comm;
  sent[sent_count++ % most_messages] = (struct message){.from = from, .count = count, .type = type, .stream = stream};
  return note(__func__, " %llx %zu %d %d %llx", at(from), count, type, peer, at(stream));
}

int ncclRecv(void* to, size_t count, int type, int peer, void* comm, void* stream) {
  (void)comm;
  received[received_count++ % most_messages] =
      (struct message){.to = to, .count = count, .type = type, .stream = stream};
  return note(__func__, " %llx %zu %d %d %llx", at(to), count, type, peer, at(stream));
}

int ncclGroupStart(void) { return note(__func__, ""); }

int ncclGroupEnd(void) {
  int wrong = note(__func__, "");
  for (size_t i = 0; i < sent_count && i < received_count && !wrong; ++i)
    wrong = put_copy(sent[i].from, received[i].to, sent[i].count, sent[i].type, received[i].stream);
  sent_count = received_count = 0;
  return wrong;
}

const char* ncclGetErrorString(int code) { return code == invalid_usage ? "invalid usage" : "unknown result code"; }
