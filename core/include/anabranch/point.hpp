#pragma once

#include <cstdint>

namespace anabranch {

// A position in a stream: the operation with that number and every one before it. 0 is before everything. Points of one
// stream are totally ordered; points of two streams are ordered only by waits.
using Point = std::uint64_t;

}  // namespace anabranch
