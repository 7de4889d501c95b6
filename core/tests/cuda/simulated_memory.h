/* Memory of the simulated driver: how it is allocated, and whose it is. Included there, once. */
#pragma once

#include "simulated_device.h"

static int allocate(uint64_t* memory, size_t bytes, struct device* device) {
  const size_t size = (bytes + 511) / 512 * 512;
  pthread_mutex_lock(&mutex);
  const int fits = device->used_memory + size <= total_memory;
  if (fits) device->used_memory += size;
  pthread_mutex_unlock(&mutex);
  if (!fits) return out_of_memory;
  struct block* block = calloc(1, sizeof *block);
  block->device = device;
  block->begin = aligned_alloc(512, size);
  block->bytes = size;
  memset(block->begin, 0xCD, size < most_marked ? size : most_marked);
  pthread_mutex_lock(&mutex);
  block->next = blocks;
  blocks = block;
  pthread_mutex_unlock(&mutex);
  *memory = (uint64_t)(uintptr_t)block->begin;
  return 0;
}

/* Whose memory it is; null: the host's. */
static struct device* device_of(uint64_t pointer) {
  struct device* found = NULL;
  pthread_mutex_lock(&mutex);
  for (const struct block* block = blocks; block; block = block->next)
    if ((char*)(uintptr_t)pointer >= block->begin && (char*)(uintptr_t)pointer < block->begin + block->bytes)
      found = block->device;
  pthread_mutex_unlock(&mutex);
  return found;
}

/* Whether work on a device may touch the memory. */
static int reaches(const struct device* reader, uint64_t pointer) {
  const struct device* owner = device_of(pointer);
  return !owner || owner == reader || (owner->shared_with >> (reader - devices) & 1);
}
