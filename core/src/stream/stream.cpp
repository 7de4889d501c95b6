#include "anabranch/stream/stream.hpp"

#include "anabranch/backend.hpp"

namespace anabranch {

bool Stream::settle(Point point, std::chrono::nanoseconds timeout) {
  try {
    return backend_.synchronize(*this, point, timeout);
  } catch (const AsyncError& error) {
    const bool asked = handles_.load(std::memory_order_relaxed) != 0 || role() != StreamRole::created;
    // A driver's error fails the whole device.
    if (asked || !error.failure()->told() || error.failure()->code() != 0) throw;
  }
  return true;
}

}  // namespace anabranch
