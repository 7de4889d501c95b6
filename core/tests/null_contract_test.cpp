#include <vector>

#include "contract/contract.hpp"
#include "null/backend.hpp"

namespace anabranch::contract {
namespace {

Backend& make(std::size_t memory) {
  static auto* const all = new std::vector<null::NullBackend*>;
  all->push_back(new null::NullBackend(static_cast<int>(all->size()), memory));
  return *all->back();
}

}  // namespace

Instance& instance() {
  static Instance instance{
      .first = make(std::size_t{1} << 30),
      .second = make(std::size_t{1} << 30),
      .make = &make,
      .legacy_order = false,
      .limits_memory = true,
      .runs_work = false,
  };
  return instance;
}

}  // namespace anabranch::contract
