#include "anabranch/stream/stream.hpp"

#include "anabranch/backend.hpp"

namespace anabranch {

bool Stream::is_settled(Point point) {
  if (handles_.load(std::memory_order_relaxed) != 0 || role() != StreamRole::created) return false;
  try {
    backend_.query(*this, point);
  } catch (const AsyncError& error) {
    // A driver's error fails the whole device.
    return error.failure()->told() && error.failure()->code() == 0;
  }
  return false;
}

}  // namespace anabranch
