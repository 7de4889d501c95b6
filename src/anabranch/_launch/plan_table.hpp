#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <vector>

#include "anabranch/backend.hpp"

namespace anabranch::python {

// The compiled forms of one Python kernel, by the kinds of their arguments. Reading takes no lock and no reference: an
// entry lives as long as the table.
class PlanTable {
 public:
  PlanTable() = default;
  PlanTable(const PlanTable&) = delete;
  PlanTable& operator=(const PlanTable&) = delete;
  // Runs with the destructor of its kernel, a Python object: any Python thread, with the interpreter lock.
  ~PlanTable() {
    for (Entry* entry = first_; entry;) delete std::exchange(entry, entry->next);
  }

  // Null if there is none yet.
  Kernel* find(const std::uint8_t* key, std::size_t length) const noexcept {
    for (Entry* entry = first_.load(std::memory_order_acquire); entry; entry = entry->next) {
      if (entry->key.size() == length && std::memcmp(entry->key.data(), key, length) == 0) return entry->kernel.get();
    }
    return nullptr;
  }

  // Two threads may add the same key; the newer entry hides the older.
  void add(const std::uint8_t* key, std::size_t length, Ref<Kernel> kernel) {
    auto* entry = new Entry{{key, key + length}, std::move(kernel), first_.load()};
    while (!first_.compare_exchange_weak(entry->next, entry)) {
    }
  }

 private:
  struct Entry {
    std::vector<std::uint8_t> key;
    Ref<Kernel> kernel;
    Entry* next;
  };
  std::atomic<Entry*> first_{nullptr};
};

}  // namespace anabranch::python
