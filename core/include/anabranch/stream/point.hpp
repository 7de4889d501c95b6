#pragma once

#include <cstdint>

namespace anabranch {

// A position in a stream: the operation with that number and all earlier ones. 0 precedes everything. Points of one
// stream are totally ordered; only waits order points of different streams.
using Point = std::uint64_t;

}  // namespace anabranch
