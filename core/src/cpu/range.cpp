#include "range.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <utility>

namespace anabranch::cpu {
namespace {

// Below this a range is not worth sharing: waking another worker takes about as long.
constexpr std::int64_t worth_sharing_ns = 30'000;
// How long the first worker runs alone to learn how long an index takes.
constexpr std::int64_t probe_ns = 4'000;
// The length of a chunk: long against the few nanoseconds that taking one costs, short enough for an urgent stream to
// wait for.
constexpr std::int64_t shortest_chunk_ns = 10'000;
constexpr std::int64_t longest_chunk_ns = 200'000;
// Chunks end on multiples of this, where they are longer, to keep vector loops and cache lines whole.
constexpr std::int64_t chunk_multiple = 64;
constexpr std::int64_t none_failed = std::numeric_limits<std::int64_t>::max();

// The chunks of a range that are still to be taken. Outlives the range, since a helper may come late.
struct Shared final : RefCounted {
  Shared(const Range& range, Pool& pool, RangeOwner& owner, std::int64_t begin, std::int64_t chunk)
      : range(range), pool(pool), owner(owner), chunk(chunk), next(begin), left(range.size - begin) {}

  const Range range;  // valid as long as a chunk is left to run
  Pool& pool;
  RangeOwner& owner;  // as the range
  const std::int64_t chunk;
  std::atomic<std::int64_t> next;
  std::atomic<std::int64_t> left;
  std::atomic<std::int64_t> failed_at{none_failed};
  std::mutex mutex;
  Fault fault;  // at `failed_at`; guarded by the mutex

  // Called by each worker whose chunk failed, before it counts the chunk as run.
  void fail(std::int64_t position) noexcept {
    Fault found = take_fault();
    const std::lock_guard lock(mutex);
    if (position >= failed_at.load(std::memory_order_relaxed)) return;
    failed_at.store(position, std::memory_order_relaxed);
    fault = std::move(found);
  }
};

Ref<Failure> failure_at(const Range& range, std::int64_t position, const Fault& fault) noexcept {
  return kernel_failure(*range.kernel, *range.shape, {static_cast<const std::uint64_t*>(range.arguments), range.slots},
                        position, fault);
}

// When all chunks were run, and before anything of the range goes.
Ref<Failure> failure_of(Shared& shared) noexcept {
  const std::int64_t position = shared.failed_at.load(std::memory_order_relaxed);
  return position == none_failed ? nullptr : failure_at(shared.range, position, shared.fault);
}

enum class Outcome {
  finished,   // this ran the last of them
  exhausted,  // none is left to take; others still run
  displaced,  // something more urgent wants the worker
};

Outcome take_chunks(Shared& shared, bool urgent) noexcept {
  const Range& range = shared.range;
  while (true) {
    if (shared.pool.stopping()) return Outcome::exhausted;
    if (shared.pool.contended(urgent)) return Outcome::displaced;
    const std::int64_t begin = shared.next.fetch_add(shared.chunk, std::memory_order_relaxed);
    if (begin >= range.size) return Outcome::exhausted;
    const std::int64_t end = std::min(begin + shared.chunk, range.size);
    // What comes after an index that failed need not run; what comes before it might fail at a lower one.
    if (begin < shared.failed_at.load(std::memory_order_relaxed)) {
      const std::int64_t stopped = range.function(begin, end, range.dims, range.arguments);
      if (stopped != end) [[unlikely]]
        shared.fail(stopped);
    }
    if (shared.left.fetch_sub(end - begin, std::memory_order_acq_rel) == end - begin) return Outcome::finished;
  }
}

// Takes chunks on one more worker, then goes.
class Helper final : public Job {
 public:
  Helper(Ref<Shared> shared, bool urgent) : Job(urgent), shared_(std::move(shared)) {}

  void run() noexcept override {
    const Outcome outcome = take_chunks(*shared_, urgent());
    if (outcome == Outcome::displaced) return shared_->pool.ready(*this);
    RangeOwner& owner = shared_->owner;
    Ref<Failure> failure = outcome == Outcome::finished ? failure_of(*shared_) : nullptr;
    delete this;
    if (outcome == Outcome::finished) owner.range_over(std::move(failure));
  }

 private:
  Ref<Shared> shared_;
};

// Copies and fills count in blocks of about this many bytes, so that an index of theirs is not too small a thing.
constexpr std::int64_t block_bytes = 4096;

std::int64_t per_block(const Elements& elements) noexcept {
  return std::max<std::int64_t>(1, block_bytes / elements.layout.itemsize);
}

template <class T>
Range block_range(RangeFunction function, const T& work) noexcept {
  const std::int64_t block = per_block(work.dst);
  return {function, nullptr, (work.count + block - 1) / block, &work};
}

std::int64_t run_copy(std::int64_t begin, std::int64_t end, const std::int64_t*, const void* arguments) {
  const auto& copy = *static_cast<const CopyWork*>(arguments);
  const std::int64_t block = per_block(copy.dst);
  Elements dst = copy.dst;
  Elements src = copy.src;
  const std::int64_t first = begin * block;
  dst.offset += first;
  src.offset += first;
  copy_elements(dst, src, std::min(end * block, copy.count) - first);
  return end;
}

std::int64_t run_fill(std::int64_t begin, std::int64_t end, const std::int64_t*, const void* arguments) {
  const auto& fill = *static_cast<const FillWork*>(arguments);
  const std::int64_t block = per_block(fill.dst);
  Elements dst = fill.dst;
  const std::int64_t first = begin * block;
  dst.offset += first;
  fill_elements(dst, fill.value, std::min(end * block, fill.count) - first);
  return end;
}

// Whether no index failed.
bool run_alone(const Range& range, std::int64_t begin, std::int64_t end, Ref<Failure>& failure) noexcept {
  const std::int64_t stopped = range.function(begin, end, range.dims, range.arguments);
  if (stopped == end) [[likely]]
    return true;
  failure = failure_at(range, stopped, take_fault());
  return false;
}

}  // namespace

Step run_range(const Range& range, Pool& pool, bool urgent, RangeOwner& owner, Ref<Failure>& failure) noexcept {
  std::int64_t begin = 0;
  std::int64_t elapsed = 0;
  if (range.size > 1) {
    const std::int64_t started = now_nanoseconds();
    for (std::int64_t step = 1; begin < range.size && elapsed < probe_ns; step *= 8) {
      const std::int64_t end = std::min(begin + step, range.size);
      if (!run_alone(range, begin, end, failure)) return Step::done;
      begin = end;
      elapsed = now_nanoseconds() - started;
    }
  }
  const double per_index =
      static_cast<double>(std::max<std::int64_t>(elapsed, 1)) / static_cast<double>(std::max<std::int64_t>(begin, 1));
  const double remaining = per_index * static_cast<double>(range.size - begin);
  if (range.size <= 1 || begin == range.size || remaining < worth_sharing_ns) {
    if (begin < range.size) run_alone(range, begin, range.size, failure);
    return Step::done;
  }

  const double chunk_ns =
      std::clamp(remaining / (pool.workers() * 8), double{shortest_chunk_ns}, double{longest_chunk_ns});
  std::int64_t chunk = std::max<std::int64_t>(1, static_cast<std::int64_t>(chunk_ns / per_index));
  if (chunk > chunk_multiple) chunk -= chunk % chunk_multiple;
  const std::int64_t chunks = (range.size - begin + chunk - 1) / chunk;
  auto shared = make_ref<Shared>(range, pool, owner, begin, chunk);
  const std::int64_t helpers = std::min<std::int64_t>(pool.workers() - 1, chunks - 1);
  for (std::int64_t i = 0; i < helpers; ++i) pool.ready(*new Helper(shared, urgent));
  switch (take_chunks(*shared, urgent)) {
    case Outcome::finished:
      failure = failure_of(*shared);
      return Step::done;
    case Outcome::displaced:
      pool.ready(*new Helper(shared, urgent));
      break;
    case Outcome::exhausted:
      break;
  }
  return Step::parked;
}

Range copy_range(const CopyWork& copy) noexcept { return block_range(&run_copy, copy); }

Range fill_range(const FillWork& fill) noexcept { return block_range(&run_fill, fill); }

}  // namespace anabranch::cpu
