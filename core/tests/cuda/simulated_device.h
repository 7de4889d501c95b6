/* The devices of the simulated driver: streams and events. Included there, once. */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "simulated_convert.h"

enum {
  invalid_value = 1,
  out_of_memory = 2,
  invalid_image = 200,
  invalid_context = 201,
  invalid_handle = 400,
  not_ready = 600,
  most_devices = 2,
  most_dimensions = 16,
  host_memory = 1,
  device_memory = 2,
};

static const size_t total_memory = (size_t)4 << 30;
/* What is larger is allocated to fill the device, and nobody looks at all of it. */
static const size_t most_marked = (size_t)64 << 20;

/* One lock for all: what the driver does takes no time worth sharing. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* Streams: what is put in, in its order. */

struct stream;

/* One record of an event. */
struct mark {
  int users;
  int done;
  double milliseconds;
};

struct event {
  struct device* device;
  struct mark* mark; /* the last record; null: none */
};

struct prerequisite {
  struct stream* stream;
  uint64_t count;
};

struct layout {
  int64_t ndim, shape[most_dimensions], strides[most_dimensions];
};

struct work {
  enum {
    idle,
    copy_bytes,
    set_bytes,
    fill_bytes,
    copy_elements,
    convert_elements,
    fill_elements,
    add_numbers,
    set_conditions,
    run_graph,
    free_memory,
    record,
    wait,
  } kind;
  struct work* next;
  struct prerequisite* after;
  size_t after_count;
  char *to, *from;
  int64_t count, to_first, from_first;
  size_t itemsize;
  char item[16];
  struct layout to_layout, from_layout;
  int to_type, from_type;
  unsigned* conditions[2];
  struct plan* plan;
  struct mark* mark;
};

static void run_plan(struct plan* plan);
static void let_go_plan(struct plan* plan);

struct stream {
  struct stream* next;
  struct device* device;
  struct stream *busier, *idler; /* the list of those that have work */
  struct work *first, *last;
  uint64_t put_in, finished;
  unsigned flags; /* 1: non-blocking */
  int priority;
  struct graph* captured; /* what is put in while it is captured */
};

static struct stream* streams; /* all there are but the legacy ones; none is ever let go */
static struct stream busy = {.busier = &busy, .idler = &busy};
static int running;

/* Its address is that of its context, its memory pool and its modules. */
static struct device {
  struct stream legacy;
  size_t used_memory;
  unsigned shared_with; /* a bit for each other device that reaches the memory */
} devices[most_devices];
static __thread struct device* current;
static __thread struct stream* own[most_devices];

/* Memory of a device, to know it by its address. */
struct block {
  struct block* next;
  struct device* device;
  char* begin;
  size_t bytes;
};
static struct block* blocks;

static void let_go(struct mark* mark) {
  if (mark && --mark->users == 0) free(mark);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1e3 * (double)time.tv_sec + 1e-6 * (double)time.tv_nsec;
}

static char* at(char* pointer, const struct layout* layout, int64_t index) {
  for (int64_t d = layout->ndim - 1; d >= 0; --d) {
    pointer += index % layout->shape[d] * layout->strides[d];
    index /= layout->shape[d];
  }
  return pointer;
}

static void give_back(char* pointer) {
  pthread_mutex_lock(&mutex);
  struct block** link = &blocks;
  while (*link && (*link)->begin != pointer) link = &(*link)->next;
  struct block* block = *link;
  *link = block->next;
  block->device->used_memory -= block->bytes;
  pthread_mutex_unlock(&mutex);
  memset(block->begin, 0xDD, block->bytes < most_marked ? block->bytes : most_marked);
  free(block->begin);
  free(block);
}

static void run(struct work* work) {
  switch (work->kind) {
    case copy_bytes:
      memmove(work->to, work->from, (size_t)work->count);
      break;
    case set_bytes:
      for (int64_t i = 0; i < work->count; ++i)
        memcpy(work->to + (size_t)i * work->itemsize, work->item, work->itemsize);
      break;
    case fill_bytes: /* with the bytes of an item, again and again */
      for (int64_t i = 0; i < work->count; ++i) work->to[i] = work->item[(size_t)i % sizeof work->item];
      break;
    case copy_elements:
      for (int64_t i = 0; i < work->count; ++i)
        memcpy(at(work->to, &work->to_layout, work->to_first + i),
               at(work->from, &work->from_layout, work->from_first + i), work->itemsize);
      break;
    case convert_elements:
      for (int64_t i = 0; i < work->count; ++i) {
        const struct number number =
            read_number(at(work->from, &work->from_layout, work->from_first + i), work->from_type);
        write_number(at(work->to, &work->to_layout, work->to_first + i), work->to_type, &number);
      }
      break;
    case fill_elements:
      for (int64_t i = 0; i < work->count; ++i)
        memcpy(at(work->to, &work->to_layout, work->to_first + i), work->item, work->itemsize);
      break;
    case add_numbers:
      for (int64_t i = 0; i < work->count; ++i) ((int32_t*)(void*)work->to)[i] += *(const int32_t*)(void*)work->item;
      break;
    case set_conditions:
      *work->conditions[0] = *(const int32_t*)(void*)work->from != 0;
      if (work->conditions[1]) *work->conditions[1] = !*work->conditions[0];
      break;
    case run_graph:
      run_plan(work->plan);
      let_go_plan(work->plan);
      break;
    case free_memory:
      give_back(work->to);
      break;
    default:
      break;
  }
}

static int ready(const struct work* work) {
  if (work->kind == wait && !work->mark->done) return 0;
  for (size_t i = 0; i < work->after_count; ++i)
    if (work->after[i].stream->finished < work->after[i].count) return 0;
  return 1;
}

/* At the end, so that all have their turn. */
static void join(struct stream* stream) {
  stream->idler = &busy;
  stream->busier = busy.busier;
  busy.busier->idler = stream;
  busy.busier = stream;
}

static void leave(struct stream* stream) {
  stream->busier->idler = stream->idler;
  stream->idler->busier = stream->busier;
}

static void finish(struct stream* stream, struct work* work) {
  ++stream->finished;
  if (work->kind == record) {
    work->mark->done = 1;
    work->mark->milliseconds = now();
  }
  let_go(work->mark);
  free(work->after);
  free(work);
  pthread_cond_broadcast(&changed);
}

static void* serve(void* nothing) {
  (void)nothing;
  pthread_mutex_lock(&mutex);
  while (1) {
    struct stream* stream = busy.idler;
    while (stream != &busy && !ready(stream->first)) stream = stream->idler;
    if (stream == &busy) {
      pthread_cond_wait(&changed, &mutex);
      continue;
    }
    struct work* work = stream->first;
    pthread_mutex_unlock(&mutex);
    run(work);
    pthread_mutex_lock(&mutex);
    stream->first = work->next;
    leave(stream);
    if (stream->first) {
      join(stream);
    } else {
      stream->last = NULL;
    }
    finish(stream, work);
  }
  return NULL;
}

static struct stream* new_stream(unsigned flags, int priority) {
  struct stream* stream = calloc(1, sizeof *stream);
  stream->device = current;
  stream->flags = flags;
  stream->priority = priority;
  pthread_mutex_lock(&mutex);
  stream->next = streams;
  streams = stream;
  pthread_mutex_unlock(&mutex);
  return stream;
}

/* The default streams are those of the current context. */
static struct stream* stream_of(void* handle) {
  if (handle == (void*)1) return &current->legacy;
  if (handle != (void*)2) return handle;
  struct stream** mine = &own[current - devices];
  if (!*mine) *mine = new_stream(0, 0);
  return *mine;
}

static int is_legacy(const struct stream* stream) { return stream == &stream->device->legacy; }

static int is_blocking(const struct stream* stream) { return !is_legacy(stream) && !(stream->flags & 1); }

/* Whether the legacy stream comes after the other. */
static int leads(const struct stream* other, const struct stream* legacy) {
  return other->device == legacy->device && is_blocking(other);
}

/* Puts a copy of the work into the stream. `mark` is taken over. */
static void put(struct stream* stream, struct work work) {
  struct work* made = malloc(sizeof *made);
  *made = work;
  pthread_mutex_lock(&mutex);
  if (!running) {
    pthread_t thread;
    running = pthread_create(&thread, NULL, serve, NULL) == 0 && pthread_detach(thread) == 0;
  }
  if (is_legacy(stream)) {
    for (struct stream* other = busy.idler; other != &busy; other = other->idler)
      made->after_count += (size_t)leads(other, stream);
    made->after = calloc(made->after_count + 1, sizeof *made->after);
    size_t i = 0;
    for (struct stream* other = busy.idler; other != &busy; other = other->idler)
      if (leads(other, stream)) made->after[i++] = (struct prerequisite){other, other->put_in};
  } else if (is_blocking(stream)) {
    made->after_count = 1;
    made->after = calloc(1, sizeof *made->after);
    made->after[0] = (struct prerequisite){&stream->device->legacy, stream->device->legacy.put_in};
  }
  ++stream->put_in;
  if (!stream->first && (made->kind == record || made->kind == wait) && ready(made)) {
    finish(stream, made); /* at once, as a GPU that has nothing to do is quick */
  } else {
    if (stream->last) {
      stream->last->next = made;
    } else {
      stream->first = made;
      join(stream);
    }
    stream->last = made;
    pthread_cond_broadcast(&changed);
  }
  pthread_mutex_unlock(&mutex);
}

/* With the lock. Of the legacy stream also what it comes after; a blocking one does not see what its records await. */
static int is_idle(const struct stream* stream) {
  for (const struct work* left = stream->first; left; left = left->next)
    if (!is_blocking(stream) || !(left->kind == record || (left->kind == wait && left->mark->done))) return 0;
  for (const struct stream* other = busy.idler; is_legacy(stream) && other != &busy; other = other->idler)
    if (leads(other, stream)) return 0;
  return 1;
}

static int query_stream(const struct stream* stream, int block) {
  pthread_mutex_lock(&mutex);
  while (block && !is_idle(stream)) pthread_cond_wait(&changed, &mutex);
  const int status = is_idle(stream) ? 0 : not_ready;
  pthread_mutex_unlock(&mutex);
  return status;
}

static int query_event(const struct event* event, int block) {
  pthread_mutex_lock(&mutex);
  struct mark* mark = event->mark;
  while (block && mark && !mark->done) pthread_cond_wait(&changed, &mutex);
  const int status = !mark || mark->done ? 0 : not_ready;
  pthread_mutex_unlock(&mutex);
  return status;
}

static int elapsed_time(float* milliseconds, const struct event* begin, const struct event* end) {
  if (query_event(begin, 0) || query_event(end, 0)) return not_ready;
  *milliseconds = (float)(end->mark->milliseconds - begin->mark->milliseconds);
  return 0;
}

static void synchronize_all(void) {
  query_stream(&current->legacy, 1);
  for (struct stream* stream = streams; stream; stream = stream->next)
    if (stream->device == current) query_stream(stream, 1);
}

static struct event* new_event(void) {
  struct event* event = calloc(1, sizeof *event);
  event->device = current;
  return event;
}

static int put_record(struct event* event, struct stream* stream) {
  if (event->device != stream->device) return invalid_handle;
  struct mark* mark = calloc(1, sizeof *mark);
  mark->users = 2;
  pthread_mutex_lock(&mutex);
  let_go(event->mark);
  event->mark = mark;
  pthread_mutex_unlock(&mutex);
  put(stream, (struct work){.kind = record, .mark = mark});
  return 0;
}

static void put_wait(struct stream* stream, const struct event* event) {
  pthread_mutex_lock(&mutex);
  struct mark* mark = event->mark;
  if (mark) ++mark->users;
  pthread_mutex_unlock(&mutex);
  if (mark) put(stream, (struct work){.kind = wait, .mark = mark});
}
