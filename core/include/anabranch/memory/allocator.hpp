#pragma once

#include <sys/types.h>

// A device's memory for other libraries, with the signatures that PyTorch's pluggable allocator expects. Both functions
// work in the order of `stream`, a handle of any library; null is the legacy stream. Any thread may call them, with or
// without the interpreter lock.
extern "C" {

// Returns null for 0 bytes. Throws anabranch::Error, as RMM's equivalents throw their errors: PyTorch expects an
// exception, not null.
void* anabranch_allocate(ssize_t bytes, int device, void* stream);
// `stream` is the stream of the allocation.
void anabranch_free(void* pointer, ssize_t bytes, int device, void* stream) noexcept;
}
