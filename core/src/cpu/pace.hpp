#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace anabranch::cpu {

// The recent time per index of each function, the end of the last range, and the last time at which a worker was woken
// for the ranges that follow. Hints: an entry may belong to another function, or to other arguments of the same one.
// Any thread may call any member.
class Paces {
 public:
  // In nanoseconds; 0 if unknown.
  double find(const void* function) const noexcept {
    const Entry& entry = entry_of(function);
    const bool same = entry.function.load(std::memory_order_relaxed) == function;
    return same ? entry.nanoseconds.load(std::memory_order_relaxed) : 0;
  }
  void note(const void* function, double nanoseconds) noexcept {
    Entry& entry = const_cast<Entry&>(entry_of(function));
    entry.nanoseconds.store(nanoseconds, std::memory_order_relaxed);
    entry.function.store(function, std::memory_order_relaxed);
  }

  std::int64_t last_end() const noexcept { return last_end_.load(std::memory_order_relaxed); }
  void note_end(std::int64_t time) noexcept { last_end_.store(time, std::memory_order_relaxed); }
  std::int64_t last_wake() const noexcept { return last_wake_.load(std::memory_order_relaxed); }
  void note_wake(std::int64_t time) noexcept { last_wake_.store(time, std::memory_order_relaxed); }

 private:
  struct Entry {
    std::atomic<const void*> function{nullptr};
    std::atomic<double> nanoseconds{0};
  };

  const Entry& entry_of(const void* function) const noexcept {
    // Functions begin at multiples of 16, and those of different kernels in different pages.
    const auto bits = reinterpret_cast<std::uintptr_t>(function);
    return entries_[(bits >> 4 ^ bits >> 12) % entries_.size()];
  }

  std::array<Entry, 64> entries_;
  std::atomic<std::int64_t> last_end_{0};
  std::atomic<std::int64_t> last_wake_{0};
};

}  // namespace anabranch::cpu
