#include "memory.hpp"

#include <algorithm>
#include <memory>
#include <string>

#include "anabranch/runtime.hpp"
#include "backend.hpp"

namespace anabranch::cuda {
namespace {

// The least threshold of a pool; a sixteenth of the device's memory if that is more.
constexpr cuuint64_t least_threshold = cuuint64_t{2} << 30;

// Atomics on one or two bytes exchange the whole word that contains them, so the allocation includes it.
std::size_t whole_words(std::size_t bytes) noexcept { return (bytes + 3) / 4 * 4; }

bool is_over(Stream& stream, Point point) noexcept {
  try {
    return stream.backend().query(stream, point);
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

struct MemoryPool::Late {
  MemoryPool* pool;
  CUdeviceptr pointer;
};

void MemoryPool::open() {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_.ordinal()};
  device_.check(driver->cuMemPoolCreate(&pool_, &properties), "creating a memory pool");
  threshold_ = std::max<cuuint64_t>(least_threshold, device_.capabilities().total_memory / 16);
  device_.check(driver->cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold_),
                "setting up a memory pool");
  // An allocation must not make its stream wait for another stream's work, which may take long.
  int no = 0;
  device_.check(driver->cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &no),
                "setting up a memory pool");
  device_.check(driver->cuStreamCreateWithPriority(&allocations_, CU_STREAM_NON_BLOCKING, 0), "creating a stream");
  device_.check(driver->cuStreamCreateWithPriority(&frees_, CU_STREAM_NON_BLOCKING, 0), "creating a stream");
}

CUresult MemoryPool::take(CUdeviceptr& pointer, std::size_t bytes, CUstream stream) {
  CUresult status = driver->cuMemAllocFromPoolAsync(&pointer, bytes, pool_, stream);
  if (status != CUDA_ERROR_OUT_OF_MEMORY) return status;
  for (const Ref<Stream>& other : device_.held_streams()) as_cuda(*other)->free_kept();
  // Freed memory with pending uses returns once they are completed. Memory that other pools of the process keep is
  // theirs.
  if (driver->cuCtxSynchronize() == CUDA_SUCCESS) driver->cuMemPoolTrimTo(pool_, 0);
  return driver->cuMemAllocFromPoolAsync(&pointer, bytes, pool_, stream);
}

Allocation MemoryPool::allocate(CudaStream* stream, std::size_t bytes) {
  const std::size_t total = device_.capabilities().total_memory;
  const std::size_t words = bytes <= total ? whole_words(bytes) : bytes;
  CUdeviceptr pointer = 0;
  CUresult status = CUDA_ERROR_OUT_OF_MEMORY;
  Point ready = 0;
  if (bytes <= total) {
    const bool in_order = stream && stream->takes_frees();
    if (in_order) {
      const Block kept = stream->take_kept(words);
      if (kept.pointer != 0) return {reinterpret_cast<std::byte*>(kept.pointer), stream->issued()};
    }
    const ContextScope scope(device_.context());
    if (in_order) {
      status = take(pointer, words, stream->native());
      if (status == CUDA_SUCCESS) ready = stream->newest();
    } else {
      // The stream may be held for long; this memory is usable at once.
      status = take(pointer, words, allocations_);
      if (status == CUDA_SUCCESS) status = driver->cuStreamSynchronize(allocations_);
    }
  }
  check(status, bytes);
  return {reinterpret_cast<std::byte*>(pointer), ready};
}

void MemoryPool::check(CUresult status, std::size_t bytes) {
  if (status == CUDA_ERROR_OUT_OF_MEMORY) {
    throw Error(ErrorKind::memory, "cannot allocate " + std::to_string(bytes) +
                                       " bytes: " + std::to_string(device_.free_memory()) + " of the " +
                                       std::to_string(device_.capabilities().total_memory) + " bytes of " +
                                       device_.alias() + " are free");
  }
  device_.check(status, "allocating");
}

CUdeviceptr MemoryPool::allocate_on(CUstream stream, std::size_t bytes) {
  CUdeviceptr pointer = 0;
  const ContextScope scope(device_.context());
  check(bytes <= device_.capabilities().total_memory ? take(pointer, bytes, stream) : CUDA_ERROR_OUT_OF_MEMORY, bytes);
  return pointer;
}

void MemoryPool::free_on(CUstream stream, CUdeviceptr pointer) noexcept {
  try {
    const ContextScope scope(device_.context());
    if (driver->cuMemFreeAsync(pointer, stream) == CUDA_SUCCESS) return;
    // The stream was destroyed, so its pending work cannot be told from any other.
    driver->cuCtxSynchronize();
    driver->cuMemFreeAsync(pointer, frees_);
  } catch (const Error&) {
    return;  // the device has failed, and its memory is gone
  }
}

void MemoryPool::free(Block block, std::vector<Use>& uses) noexcept {
  const CUdeviceptr pointer = block.pointer;
  if (forked()) return;
  const bool failed =
      std::any_of(uses.begin(), uses.end(), [](const Use& use) { return use.stream->may_have_failed(); });
  if (failed) uses = still_pending(std::move(uses));
  if (uses.size() == 1 && &uses[0].stream->backend() == &device_) {
    auto& stream = static_cast<CudaStream&>(*uses[0].stream);
    if (stream.takes_frees()) {
      const Block over = stream.keep({pointer, whole_words(block.bytes)});
      if (over.pointer == 0) return;
      const ContextScope scope(device_.context());
      driver->cuMemFreeAsync(over.pointer, stream.native());
      return;
    }
    // Only if the driver does not have the use yet: a host that saw it completed must not find the stream busy again.
    if (stream.submitted() < uses[0].point && stream.free_in_turn(pointer)) return;
  }
  free_after(pointer, std::move(uses));
}

void MemoryPool::free_after(CUdeviceptr pointer, std::vector<Use> uses) noexcept {
  if (free_behind(pointer, uses)) return;
  after(
      std::move(uses),
      [](void* context) noexcept {
        const std::unique_ptr<Late> late(static_cast<Late*>(context));
        late->pool->free_now(late->pointer);
      },
      new Late{this, pointer});
}

bool MemoryPool::free_behind(CUdeviceptr pointer, const std::vector<Use>& uses) noexcept {
  const bool submitted = std::all_of(uses.begin(), uses.end(), [](const Use& use) {
    CudaStream* stream = as_cuda(*use.stream);
    return stream && stream->submitted() >= use.point && !stream->failure_at(use.point);
  });
  if (!submitted) return false;
  try {
    const ContextScope scope(device_.context());
    std::lock_guard lock(mutex_);
    for (const Use& use : uses) {
      if (!is_over(*use.stream, use.point)) as_cuda(*use.stream)->lead(device_, frees_, use.point, nullptr);
    }
    driver->cuMemFreeAsync(pointer, frees_);
    return true;
  } catch (const Error&) {
    return false;  // the slow path queries again, and treats failed work as completed
  }
}

void MemoryPool::free_now(CUdeviceptr pointer) noexcept {
  const ContextScope scope(device_.context());
  driver->cuMemFreeAsync(pointer, frees_);
}

std::size_t MemoryPool::unused() {
  cuuint64_t reserved = 0;
  cuuint64_t used = 0;
  driver->cuMemPoolGetAttribute(pool_, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
  driver->cuMemPoolGetAttribute(pool_, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
  std::size_t sum = reserved > used ? reserved - used : 0;
  for (const Ref<Stream>& stream : device_.held_streams()) {
    const std::size_t kept = as_cuda(*stream)->kept_bytes();
    if (kept != 0 && is_over(*stream, stream->issued())) sum += kept;
  }
  return sum;
}

// The driver releases freed memory only during a call that blocks the host until the free is completed. Our waits only
// query, and a query does not suffice for `cuMemPoolTrimTo` either.
void MemoryPool::trim() noexcept {
  if (forked()) return;
  const bool slow = device_.quicken_queries();
  if (!slow && unused() <= threshold_) return;
  try {
    const ContextScope scope(device_.context());
    driver->cuCtxSynchronize();
  } catch (const Error&) {
    return;  // the device has failed, and its memory is gone
  }
}

void MemoryPool::share_with(CudaBackend& other) {
  std::lock_guard lock(mutex_);
  if (std::find(shared_with_.begin(), shared_with_.end(), other.ordinal()) != shared_with_.end()) return;
  shared_with_.push_back(other.ordinal());
  int can = 0;
  if (driver->cuDeviceCanAccessPeer(&can, other.ordinal(), device_.ordinal()) != CUDA_SUCCESS || !can) return;
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, other.ordinal()}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  driver->cuMemPoolSetAccess(pool_, &access, 1);
}

HostSource pinned_source() {
  if (installation().devices == 0) return {};
  return {
      .allocate = [](std::size_t bytes) noexcept -> void* {
        void* pointer = nullptr;
        try {
          const ContextScope scope(any_context());
          if (driver->cuMemHostAlloc(&pointer, bytes, CU_MEMHOSTALLOC_PORTABLE) != CUDA_SUCCESS) return nullptr;
        } catch (const Error&) {
          return nullptr;
        }
        return pointer;
      },
      .release =
          [](void* pointer, std::size_t) noexcept {
            try {
              const ContextScope scope(any_context());
              driver->cuMemFreeHost(pointer);
            } catch (const Error&) {
              return;  // the driver is gone, and the pages with it
            }
          },
  };
}

int device_of(const void* pointer) {
  if (installation().devices == 0) return -1;
  CUpointer_attribute asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  // For memory that the driver does not know, the type stays 0.
  unsigned type = 0;
  unsigned managed = 0;
  int ordinal = -1;
  void* answers[] = {&type, &managed, &ordinal};
  const ContextScope scope(any_context());
  const CUresult status = driver->cuPointerGetAttributes(3, asked, answers, reinterpret_cast<CUdeviceptr>(pointer));
  if (status != CUDA_SUCCESS) throw driver_error(status, "querying the device of a pointer");
  return type == CU_MEMORYTYPE_DEVICE || managed != 0 ? ordinal : -1;
}

Allocation CudaBackend::allocate(Stream* stream, std::size_t bytes, MemoryKind kind) {
  open();
  if (Ref<Failure> failed = failure()) throw AsyncError(std::move(failed));
  if (kind == MemoryKind::device) return memory_.allocate(static_cast<CudaStream*>(stream), bytes);
  void* pointer = pinned_source().allocate(bytes);
  if (!pointer) throw Error(ErrorKind::memory, "cannot pin " + std::to_string(bytes) + " bytes of host memory");
  return {static_cast<std::byte*>(pointer), 0};
}

void CudaBackend::free(std::byte* pointer, std::size_t bytes, MemoryKind kind, std::vector<Use>& uses) noexcept {
  if (kind == MemoryKind::device) return memory_.free({reinterpret_cast<CUdeviceptr>(pointer), bytes}, uses);
  // The driver knows how many bytes it has pinned.
  after(std::move(uses), [](void* context) noexcept { pinned_source().release(context, 0); }, pointer);
}

std::size_t CudaBackend::free_memory() {
  const ContextScope scope(open());
  std::size_t free = 0;
  std::size_t total = 0;
  check(driver->cuMemGetInfo(&free, &total), "querying free memory");
  return free + memory_.unused();
}

}  // namespace anabranch::cuda
