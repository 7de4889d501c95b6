#include "memory.hpp"

#include <memory>
#include <string>

#include "backend.hpp"

namespace anabranch::null {
namespace {

constexpr std::size_t alignment = 256;

}  // namespace

struct AddressSpace::Late {
  AddressSpace* space;
  std::size_t bytes;
};

std::byte* AddressSpace::allocate(std::size_t bytes) {
  std::lock_guard lock(mutex_);
  if (bytes > limit_ - used_) {
    throw Error(ErrorKind::memory, "cannot allocate " + std::to_string(bytes) + " bytes: " +
                                       std::to_string(limit_ - used_) + " of " + std::to_string(limit_) + " are free");
  }
  used_ += bytes;
  const std::uintptr_t address = next_;
  next_ += (bytes + alignment - 1) / alignment * alignment;
  return reinterpret_cast<std::byte*>(address);
}

void AddressSpace::free(std::size_t bytes, std::vector<Use> uses) noexcept {
  after(
      std::move(uses),
      [](void* context) noexcept {
        const std::unique_ptr<Late> late(static_cast<Late*>(context));
        std::lock_guard lock(late->space->mutex_);
        late->space->used_ -= late->bytes;
      },
      new Late{this, bytes});
}

std::size_t AddressSpace::available() {
  std::lock_guard lock(mutex_);
  return limit_ - used_;
}

Allocation NullBackend::allocate(Stream* stream, std::size_t bytes, MemoryKind) {
  note({"allocate", stream ? stream->name() : std::string()});
  return {memory_.allocate(bytes), 0};
}

void NullBackend::free(std::byte*, std::size_t bytes, MemoryKind, std::vector<Use>& uses) noexcept {
  note({"free"});
  memory_.free(bytes, std::move(uses));
}

std::size_t NullBackend::free_memory() { return memory_.available(); }

}  // namespace anabranch::null
