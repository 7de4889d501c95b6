#pragma once

#include <cstdint>

namespace anabranch {

// Where in a program something was called, as the layer above tells it: a function's code and an instruction of it.
struct Site {
  std::uintptr_t code = 0;  // 0: not known
  std::int32_t instruction = 0;
};

}  // namespace anabranch
