/* What the streams of the simulated driver run: copies, fills, and the kernels that it knows, which are those of
 * core/src/cuda and two of the tests of graphs. Included there, once. */
#pragma once

#include "simulated_device.h"

static struct work copy_work(uint64_t to, uint64_t from, size_t bytes) {
  return (struct work){
      .kind = copy_bytes, .to = (char*)(uintptr_t)to, .from = (char*)(uintptr_t)from, .count = (int64_t)bytes};
}

static struct work set_work(uint64_t to, uint64_t value, size_t itemsize, size_t count) {
  struct work work = {.kind = set_bytes, .to = (char*)(uintptr_t)to, .count = (int64_t)count, .itemsize = itemsize};
  memcpy(work.item, &value, itemsize);
  return work;
}

/* As in core/src/cuda/elements.cu. */
struct tiles {
  int64_t ndim, size[16], to[16], from[16];
};

/* Kernels, known by their names: copy_4, tiles_4 and fill_4 for elements of four bytes, copy_run and fill_run for
 * bytes; add for one int32, add_all for many. */
struct function {
  struct device* device;
  char name[64];
};

static struct function* new_function(struct device* device, const char* name) {
  struct function* function = calloc(1, sizeof *function);
  function->device = device;
  strncpy(function->name, name, sizeof function->name - 1);
  return function;
}

/* What a launch of it does; nothing if it is not known. */
static struct work kernel_work(const struct function* function, void** parameters) {
  struct work work = {.kind = idle};
  const char* name = function->name;
  if (strcmp(name, "copy_run") == 0) {
    work = copy_work(**(uint64_t**)parameters, *(uint64_t*)parameters[1], *(size_t*)parameters[2]);
  } else if (strcmp(name, "fill_run") == 0) {
    work = (struct work){.kind = fill_bytes, .to = *(char**)parameters[0], .count = *(int64_t*)parameters[2]};
    memcpy(work.item, parameters[1], sizeof work.item);
  } else if (strncmp(name, "copy_", 5) == 0 || strcmp(name, "convert") == 0) {
    work.kind = name[2] == 'p' ? copy_elements : convert_elements;
    if (work.kind == convert_elements) {
      work.to = *(char**)parameters[0];
      work.to_type = *(int*)parameters[7];
      work.from_type = *(int*)parameters[8];
    }
    work.from = *(char**)parameters[1];
    work.count = *(int64_t*)parameters[2];
    work.to_first = *(int64_t*)parameters[3];
    work.from_first = *(int64_t*)parameters[4];
    work.to_layout = *(struct layout*)parameters[5];
    work.from_layout = *(struct layout*)parameters[6];
  } else if (strncmp(name, "tiles_", 6) == 0) {
    const struct tiles* axes = parameters[3];
    work.kind = copy_elements;
    work.from = *(char**)parameters[1];
    work.count = 1;
    work.to_layout.ndim = work.from_layout.ndim = axes->ndim;
    for (int64_t d = 0; d < axes->ndim; ++d) {
      work.count *= axes->size[d];
      work.to_layout.shape[d] = work.from_layout.shape[d] = axes->size[d];
      work.to_layout.strides[d] = axes->to[d];
      work.from_layout.strides[d] = axes->from[d];
    }
  } else if (strncmp(name, "fill_", 5) == 0) {
    work.kind = fill_elements;
    memcpy(work.item, parameters[1], sizeof work.item);
    work.count = *(int64_t*)parameters[2];
    work.to_first = *(int64_t*)parameters[3];
    work.to_layout = *(struct layout*)parameters[4];
  } else if (strcmp(name, "add") == 0 || strcmp(name, "add_all") == 0) {
    work.kind = add_numbers;
    work.count = 1;
    if (strcmp(name, "add_all") == 0) work.count = *(int64_t*)*parameters++;
    work.to = *(char**)parameters[0];
    memcpy(work.item, parameters[1], sizeof(int32_t));
  } else if (strcmp(name, "set_condition") == 0 || strcmp(name, "set_conditions") == 0) {
    work.kind = set_conditions;
    work.conditions[0] = *(unsigned**)*parameters++;
    if (strcmp(name, "set_conditions") == 0) work.conditions[1] = *(unsigned**)*parameters++;
    work.from = *(char**)*parameters;
  }
  if (work.kind == copy_elements || work.kind == fill_elements) {
    work.to = *(char**)parameters[0];
    work.itemsize = (size_t)atoi(strrchr(name, '_') + 1);
  }
  return work;
}

static int put_kernel(const struct function* function, void** parameters, void* stream) {
  if (function->device != stream_of(stream)->device) return invalid_handle;
  put(stream_of(stream), kernel_work(function, parameters));
  return 0;
}
