/* The kernels that the simulated driver knows: those of core/src/cuda/elements.cu. Included there, once. */
#pragma once

#include "simulated_device.h"

/* Kernels, known by their names: copy_4 and fill_4 for elements of four bytes. */
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

static int put_kernel(const struct function* function, void** parameters, void* stream) {
  struct work work = {.kind = idle};
  if (function->device != stream_of(stream)->device) return invalid_handle;
  const char* size = strrchr(function->name, '_');
  if (strncmp(function->name, "copy_", 5) == 0) {
    work.kind = copy_elements;
    work.from = *(char**)parameters[1];
    work.count = *(int64_t*)parameters[2];
    work.to_first = *(int64_t*)parameters[3];
    work.from_first = *(int64_t*)parameters[4];
    work.to_layout = *(struct layout*)parameters[5];
    work.from_layout = *(struct layout*)parameters[6];
  } else if (strncmp(function->name, "fill_", 5) == 0) {
    work.kind = fill_elements;
    memcpy(work.item, parameters[1], sizeof work.item);
    work.count = *(int64_t*)parameters[2];
    work.to_first = *(int64_t*)parameters[3];
    work.to_layout = *(struct layout*)parameters[4];
  }
  if (work.kind != idle) {
    work.to = *(char**)parameters[0];
    work.itemsize = (size_t)atoi(size + 1);
  }
  put(stream_of(stream), work);
  return 0;
}
