#pragma once

#include <sys/types.h>

// The memory of a GPU for other libraries, in the form that PyTorch takes an allocator in. In the order of the stream:
// a handle of theirs or ours, null being the legacy one. Any thread, with or without the interpreter lock.
extern "C" {

// Null for 0 bytes. Throws anabranch::Error, as RMM's functions for the same purpose throw their errors: PyTorch looks
// for exceptions, not for null.
void* anabranch_allocate(ssize_t bytes, int device, void* stream);
// `stream` is the one that it was allocated for.
void anabranch_free(void* pointer, ssize_t bytes, int device, void* stream) noexcept;
}
