#include "contract/contract.hpp"
#include "cuda/backend.hpp"

namespace anabranch::contract {
namespace {

// Devices made for one test share the GPUs; each has streams, a legacy order and bookkeeping of its own.
Backend& make(std::size_t) {
  const cuda::Installation& found = cuda::installation();
  if (found.devices == 0) check::skip(found.missing);
  static int made = -1;
  ++made;
  return *new cuda::CudaBackend(made % found.devices, made);
}

}  // namespace

Instance& instance() {
  static Instance instance{
      .first = make(0),
      .second = make(0),
      .make = &make,
      .legacy_order = true,
      .limits_memory = false,
      .runs_work = false,
  };
  return instance;
}

}  // namespace anabranch::contract
