// What every backend promises, whatever it runs on. A test program links these tests with one definition of `instance`.
#pragma once

#include "anabranch/backend.hpp"
#include "check.hpp"
#include "gate.hpp"

namespace anabranch::contract {

struct Instance {
  Backend& first;  // two devices of one kind, which the tests share
  Backend& second;
  Backend& (*make)(std::size_t memory);  // one more with that much memory; never destroyed
  bool legacy_order;                     // whether the legacy stream is in order with blocking streams
  bool limits_memory;                    // whether `make` heeds `memory`
  bool runs_work;                        // whether copies and fills change memory, which the host may touch
};

Instance& instance();
inline Backend& device() { return instance().first; }

inline void need(bool has, const char* what) {
  if (!has) check::skip(instance().first.capabilities().kind + " " + what);
}

}  // namespace anabranch::contract
