#pragma once

#include <cstdint>

namespace anabranch {

// A call site in a program, as the layer above provides it: a function's code and an instruction in it.
struct Site {
  std::uintptr_t code = 0;  // 0: unknown
  std::int32_t instruction = 0;
};

}  // namespace anabranch
