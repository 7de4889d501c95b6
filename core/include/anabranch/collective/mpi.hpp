#pragma once

#include "anabranch/collective/collective.hpp"

namespace anabranch {

// The functions of the MPI library that the process has loaded, by `Verb`, and all else that a transport over it needs.
//
// Implementations define handles differently: an int in MPICH, a pointer in Open MPI and in the ABI of MPI 5. They
// agree about where a function of the C calling convention finds it: an argument of up to 8 bytes has a register or a
// stack slot of 8 bytes to itself (x86-64 System V, AArch64), and one of 4 bytes is the lower half. So handles and
// counts are passed as 8 bytes to all of them, and the storage of a request is 8 bytes, of which MPICH uses 4.
struct MpiFunctions {
  void* start[11] = {};  // MPI_Iallreduce and so on, with int or 64-bit counts
  void* test = nullptr;
  void* get_count = nullptr;  // with the same counts
  void* error_string = nullptr;
  void* comm_free = nullptr;
  void* in_place = nullptr;
  bool large_counts = false;
};

// The caller has initialized MPI, for calls of at least one thread at a time, and set its communicators to return
// errors.
Ref<Transport> make_mpi_transport(const MpiFunctions& functions);

}  // namespace anabranch
