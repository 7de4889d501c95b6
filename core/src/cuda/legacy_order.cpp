#include "legacy_order.hpp"

#include <utility>

#include "backend.hpp"

namespace anabranch::cuda {
namespace {

// For a stream in no legacy order: nothing that its next operation comes after is ever held.
const std::atomic<int> nothing_held{0};

}  // namespace

void LegacyPlace::open(StreamRole role, bool non_blocking) noexcept {
  marked_.store(0, std::memory_order_relaxed);
  if (role == StreamRole::legacy) {
    side_ = Side::legacy;
    other_held_ = &order_.blocking_held;
  } else {
    side_ = non_blocking ? Side::none : Side::blocking;
    other_held_ = non_blocking ? &nothing_held : &order_.legacy_held;
  }
}

void LegacyPlace::enter() {
  if (side_ == Side::legacy) {
    order_.legacy_held.store(1, std::memory_order_release);
  } else if (side_ == Side::blocking) {
    std::lock_guard lock(order_.mutex);
    if (std::exchange(is_held_, true)) return;
    for_legacy_ = 0;
    order_.held.push_back(this);
    order_.blocking_held.fetch_add(1, std::memory_order_release);
  }
}

void LegacyPlace::leave() noexcept {
  if (side_ == Side::legacy) {
    order_.legacy_held.store(0, std::memory_order_release);
  } else if (side_ == Side::blocking) {
    std::lock_guard lock(order_.mutex);
    if (!std::exchange(is_held_, false)) return;
    std::erase(order_.held, this);
    order_.blocking_held.fetch_sub(1, std::memory_order_release);
  }
}

void LegacyPlace::add_waits(DeferredQueue& queue) {
  if (side_ == Side::legacy) {
    std::lock_guard lock(order_.mutex);
    for (LegacyPlace* place : order_.held) {
      CudaStream& other = place->stream_;
      const Point point = other.issued();
      if (point <= place->for_legacy_ || !other.try_retain()) continue;
      const auto kept = Ref<CudaStream>::take(&other);
      place->for_legacy_ = point;
      queue.push(std::make_unique<WaitOperation>(other, point, nullptr), 0);
    }
  } else if (side_ == Side::blocking && order_.legacy_held.load(std::memory_order_acquire) != 0) {
    const Point point = legacy_end();
    std::lock_guard lock(order_.mutex);
    if (point <= of_legacy_) return;
    of_legacy_ = point;
    queue.push(std::make_unique<WaitOperation>(*order_.legacy, point, nullptr), 0);
  }
}

Point LegacyPlace::legacy_end() const noexcept { return order_.legacy->issued(); }

}  // namespace anabranch::cuda
