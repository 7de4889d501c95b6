#include "range.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "memory/tiling.hpp"

namespace anabranch::cpu {
namespace {

// A shorter range does not pay for waking another worker, which takes about as long.
constexpr std::int64_t worth_waking_ns = 30'000;
// The same if a worker is watching the queue. Where ranges follow each other, a worker is woken for the next of them,
// but only at intervals, in case it cannot run.
constexpr std::int64_t worth_sharing_ns = 2'000;
constexpr std::int64_t follows_ns = 5'000;
constexpr std::int64_t between_wakes_ns = 500'000;
// The time that the first worker runs alone to measure the time per index, or to confirm the expected one.
constexpr std::int64_t probe_ns = 4'000;
constexpr std::int64_t short_probe_ns = 100;
constexpr double about = 4;
// The length of a chunk: long compared with the few nanoseconds that taking one costs, short enough for an urgent
// stream to wait for.
constexpr std::int64_t shortest_chunk_ns = 1'000;
constexpr std::int64_t longest_chunk_ns = 200'000;
// The number of chunks in each worker's share, so that a worker that starts late leaves the others little to wait for.
constexpr std::int64_t chunks_per_share = 4;
// Longer chunks end on multiples of this, to keep vector loops and cache lines whole.
constexpr std::int64_t chunk_multiple = 64;
// The time that the first worker waits for the others' last chunks, so that the stream stays where its data is cached.
constexpr std::int64_t patience_ns = 3'000;
constexpr std::int64_t none_failed = std::numeric_limits<std::int64_t>::max();

std::int64_t divided(std::int64_t number, std::int64_t by) noexcept { return (number + by - 1) / by; }

const void* key(const Range& range) noexcept { return reinterpret_cast<const void*>(range.function); }

// Returns `end`, or the first index that failed.
std::int64_t run(const Range& range, std::int64_t begin, std::int64_t end) noexcept {
  const std::int64_t stopped = range.function(begin, end, range.dims, range.arguments);
  return range.kernel ? stopped : end;
}

Ref<Failure> failure_at(const Range& range, std::int64_t position, const Fault& fault) noexcept {
  return kernel_failure(*range.kernel, *range.shape, {static_cast<const std::uint64_t*>(range.arguments), range.slots},
                        position, fault);
}

// The number of indices that take that long.
std::int64_t indices_in(double nanoseconds, double per_index) noexcept {
  constexpr double most = 1e18;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(nanoseconds / per_index, most)));
}

// The chunk size for a part of a range that one worker should get.
std::int64_t chunk_of(std::int64_t share, double per_index) noexcept {
  const double share_ns = per_index * static_cast<double>(share);
  const double chunk_ns = std::clamp(share_ns / chunks_per_share, double{shortest_chunk_ns}, double{longest_chunk_ns});
  const std::int64_t chunks = std::clamp<std::int64_t>(static_cast<std::int64_t>(share_ns / chunk_ns), 1, share);
  const std::int64_t chunk = divided(share, chunks);
  return chunk > chunk_multiple ? divided(chunk, chunk_multiple) * chunk_multiple : chunk;
}

// The part of a range from which one worker takes chunks before it turns to those of others, so that the next kernel on
// the same arrays finds its data in that worker's cache. The padding keeps two shares on separate cache lines at any
// alignment; aligned memory would take longer to allocate.
struct Share {
  std::atomic<std::int64_t> next{0};
  std::int64_t end = 0;
  std::array<std::byte, 112> apart;
};

// The chunks of a range that are not yet taken. Outlives the range, because a helper may start late.
struct Shared final : RefCounted {
  // For the indices from `begin`, shared by that many workers.
  Shared(const Range& range, Pool& pool, RangeOwner& owner, std::int64_t begin, int workers, double per_index)
      : range(range),
        pool(pool),
        owner(owner),
        chunk(chunk_of(divided(range.size - begin, workers), per_index)),
        left(range.size - begin) {
    const std::int64_t length = divided(divided(left, workers), chunk) * chunk;
    shares = std::vector<Share>(static_cast<std::size_t>(divided(left, length)));
    for (Share& share : shares) {
      share.next.store(begin, std::memory_order_relaxed);
      begin = share.end = std::min(begin + length, range.size);
    }
  }

  Share& share(std::size_t place) noexcept {
    return shares[(static_cast<std::size_t>(Pool::this_worker()) + place) % shares.size()];
  }

  // Records that `taken` indices have run. Returns whether they were the last.
  bool count(std::int64_t taken) noexcept {
    return taken > 0 && left.fetch_sub(taken, std::memory_order_acq_rel) == taken;
  }

  // Called by the first worker when it stops waiting. Returns whether the range is over; then nobody calls the owner.
  bool leave() noexcept { return last_word.exchange(LastWord::left, std::memory_order_acq_rel) == LastWord::over; }
  // Called by any other worker that ran the last chunk. Returns whether it must call the owner.
  bool finish() noexcept { return last_word.exchange(LastWord::over, std::memory_order_acq_rel) == LastWord::left; }

  // Runs a chunk, unless one before it has failed: indices after a failed one need not run, but those before it might
  // fail at a lower one.
  void run_chunk(std::int64_t begin, std::int64_t end) noexcept {
    if (begin >= failed_at.load(std::memory_order_relaxed)) return;
    const std::int64_t stopped = run(range, begin, end);
    if (stopped != end) [[unlikely]]
      fail(stopped);
  }

  // Called by each worker whose chunk failed, before it counts the chunk as run.
  void fail(std::int64_t position) noexcept {
    Fault found = take_fault();
    const std::lock_guard lock(mutex);
    if (position >= failed_at.load(std::memory_order_relaxed)) return;
    failed_at.store(position, std::memory_order_relaxed);
    fault = std::move(found);
  }

  // Requires that all chunks have run and that the range still exists.
  Ref<Failure> failure() const noexcept {
    const std::int64_t position = failed_at.load(std::memory_order_relaxed);
    return position == none_failed ? nullptr : failure_at(range, position, fault);
  }

  enum class LastWord : std::uint8_t { none, left, over };

  const Range range;  // valid while a chunk is left to run
  Pool& pool;
  RangeOwner& owner;  // as the range
  std::int64_t chunk;
  std::vector<Share> shares;
  std::atomic<std::int64_t> left;
  std::atomic<LastWord> last_word{LastWord::none};
  std::atomic<std::int64_t> failed_at{none_failed};
  std::mutex mutex;
  Fault fault;  // at `failed_at`; guarded by the mutex
};

enum class Outcome {
  exhausted,  // no chunk is left to take; others may still run
  displaced,  // a more urgent job needs the worker
};

// Adds the number of indices that it ran to `taken`.
Outcome take_chunks(Shared& shared, bool urgent, std::int64_t& taken) noexcept {
  for (std::size_t place = 0; place < shared.shares.size(); ++place) {
    Share& share = shared.share(place);
    while (share.next.load(std::memory_order_relaxed) < share.end) {
      if (shared.pool.stopping()) return Outcome::exhausted;
      if (shared.pool.contended(urgent)) return Outcome::displaced;
      const std::int64_t begin = share.next.fetch_add(shared.chunk, std::memory_order_relaxed);
      if (begin >= share.end) break;
      const std::int64_t end = std::min(begin + shared.chunk, share.end);
      shared.run_chunk(begin, end);
      taken += end - begin;
    }
  }
  return Outcome::exhausted;
}

// Takes chunks on one more worker, then ends.
class Helper final : public Job {
 public:
  Helper(Ref<Shared> shared, bool urgent) : Job(urgent), shared_(std::move(shared)) {}

  void run() noexcept override {
    std::int64_t taken = 0;
    const Outcome outcome = take_chunks(*shared_, urgent(), taken);
    if (shared_->count(taken)) {
      RangeOwner& owner = shared_->owner;
      // The first worker may destroy the range as soon as it sees that everything is over.
      const bool last = shared_->finish();
      Ref<Failure> failure = last ? shared_->failure() : nullptr;
      delete this;
      if (last) owner.range_over(std::move(failure));
    } else if (outcome == Outcome::displaced) {
      shared_->pool.ready(*this);
    } else {
      delete this;
    }
  }

 private:
  Ref<Shared> shared_;
};

// Copies and fills count in blocks of about this many bytes, so that an index is not too little work.
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

// Separate, because it takes another time per index.
std::int64_t run_conversion(std::int64_t begin, std::int64_t end, const std::int64_t* dims, const void* arguments) {
  return run_copy(begin, end, dims, arguments);
}

std::int64_t run_tiles(std::int64_t begin, std::int64_t end, const std::int64_t*, const void* arguments) {
  const auto& copy = *static_cast<const CopyWork*>(arguments);
  Tiling(copy.dst, copy.src, copy.count).copy(begin, end);
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

// The least remaining time for which sharing a range that began at that time pays.
std::int64_t worth_sharing(Pool& pool, std::int64_t started) noexcept {
  if (pool.waiting()) return worth_waking_ns;
  if (pool.watched()) return worth_sharing_ns;
  Paces& paces = pool.paces();
  const bool follows = started - paces.last_end() < follows_ns;
  if (!follows || started - paces.last_wake() < between_wakes_ns) return worth_waking_ns;
  paces.note_wake(started);
  return worth_sharing_ns;
}

// Whether `elapsed` is about the expected time for that many indices.
bool as_expected(std::int64_t elapsed, std::int64_t indices, double expected) noexcept {
  const double predicted = expected * static_cast<double>(indices);
  return static_cast<double>(elapsed) < about * std::max(predicted, double{short_probe_ns});
}

// Returns whether no index failed.
bool run_alone(const Range& range, std::int64_t begin, std::int64_t end, Ref<Failure>& failure) noexcept {
  const std::int64_t stopped = run(range, begin, end);
  if (stopped == end) [[likely]]
    return true;
  failure = failure_at(range, stopped, take_fault());
  return false;
}

// The end of the indices that one worker ran alone, and the expected time per index for the rest.
struct Begun {
  std::int64_t end = 0;
  double per_index = 0;
};

// Runs the first indices until the time per index is known. If one failed, all indices count as run.
Begun probe(const Range& range, double expected, std::int64_t started, Ref<Failure>& failure) noexcept {
  std::int64_t begin = 0;
  std::int64_t elapsed = 0;
  std::int64_t step = expected > 0 ? indices_in(short_probe_ns, expected) : 1;
  while (begin < range.size && elapsed < probe_ns) {
    const std::int64_t end = step < range.size - begin ? begin + step : range.size;
    if (!run_alone(range, begin, end, failure)) return {range.size, 0};
    begin = end;
    elapsed = std::max<std::int64_t>(1, now_nanoseconds() - started);
    if (expected > 0 && as_expected(elapsed, begin, expected)) return {begin, expected};
    // Growing steps, but not far beyond the probe time.
    const auto rest = static_cast<double>(probe_ns - elapsed) / static_cast<double>(elapsed);
    step =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(begin) * std::clamp(rest, 1.0, 8.0)));
  }
  return {begin, static_cast<double>(elapsed) / static_cast<double>(begin)};
}

// Runs a short first chunk of the worker's own share to measure the current time per index. No other worker may know of
// the range before.
void begin_share(Shared& shared, double expected) noexcept {
  Share& share = shared.share(0);
  const std::int64_t begin = share.next.load(std::memory_order_relaxed);
  const std::int64_t end = std::min(begin + std::min(indices_in(short_probe_ns, expected), shared.chunk), share.end);
  const std::int64_t started = now_nanoseconds();
  shared.run_chunk(begin, end);
  const std::int64_t elapsed = now_nanoseconds() - started;
  if (!as_expected(elapsed, end - begin, expected)) {
    const double per_index = static_cast<double>(elapsed) / static_cast<double>(end - begin);
    shared.chunk = std::min(shared.chunk, indices_in(longest_chunk_ns, per_index));
  }
  share.next.store(end, std::memory_order_relaxed);
  shared.left.store(shared.left.load(std::memory_order_relaxed) - (end - begin), std::memory_order_relaxed);
}

// Waits briefly for the last chunks of others. Returns whether they are over.
bool await_others(const Shared& shared) noexcept {
  const std::int64_t until = now_nanoseconds() + patience_ns;
  do {
    for (int i = 0; i < 16; ++i) {
      if (shared.left.load(std::memory_order_acquire) == 0) return true;
      relax();
    }
  } while (!shared.pool.waiting() && !shared.pool.stopping() && now_nanoseconds() < until);
  return false;
}

Step share(const Ref<Shared>& shared, bool urgent, Ref<Failure>& failure) noexcept {
  Pool& pool = shared->pool;
  for (std::size_t i = 1; i < shared->shares.size(); ++i) pool.share(*new Helper(shared, urgent));
  const std::int64_t started = now_nanoseconds();
  std::int64_t taken = 0;
  const Outcome outcome = take_chunks(*shared, urgent, taken);
  if (taken > 0) {
    const std::int64_t elapsed = now_nanoseconds() - started;
    pool.paces().note(key(shared->range), static_cast<double>(elapsed) / static_cast<double>(taken));
  }
  bool over = shared->count(taken);
  if (!over) {
    if (outcome == Outcome::displaced) {
      pool.ready(*new Helper(shared, urgent));
    } else {
      over = await_others(*shared);
    }
  }
  if (!over && !shared->leave()) return Step::parked;
  failure = shared->failure();
  return Step::done;
}

}  // namespace

Step run_range(const Range& range, Pool& pool, bool urgent, RangeOwner& owner, Ref<Failure>& failure) noexcept {
  if (range.size <= 1) {
    if (range.size == 1) run_alone(range, 0, 1, failure);
    return Step::done;
  }
  Paces& paces = pool.paces();
  const std::int64_t started = now_nanoseconds();
  const double expected = paces.find(key(range));
  const auto threshold = static_cast<double>(worth_sharing(pool, started));
  // For a short range, one more worker gets a share if it starts in time; no others do.
  const auto workers = [&pool](double time) {
    return time < double{worth_waking_ns} ? std::min(pool.workers(), 2) : pool.workers();
  };
  const double whole = expected * static_cast<double>(range.size);
  if (whole >= threshold) {
    auto shared = make_ref<Shared>(range, pool, owner, 0, workers(whole), expected);
    begin_share(*shared, expected);
    return share(shared, urgent, failure);
  }
  const Begun begun = probe(range, expected, started, failure);
  const double rest = begun.per_index * static_cast<double>(range.size - begun.end);
  if (begun.end == range.size || rest < threshold) {
    if (begun.end < range.size) run_alone(range, begun.end, range.size, failure);
    const std::int64_t ended = now_nanoseconds();
    paces.note(key(range), static_cast<double>(ended - started) / static_cast<double>(range.size));
    paces.note_end(ended);
    return Step::done;
  }
  paces.note(key(range), begun.per_index);
  auto shared = make_ref<Shared>(range, pool, owner, begun.end, workers(rest), begun.per_index);
  return share(shared, urgent, failure);
}

Range copy_range(const CopyWork& copy) noexcept {
  if (!converts(copy.dst, copy.src)) {
    const std::int64_t tiles = Tiling(copy.dst, copy.src, copy.count).tiles();
    if (tiles > 0) return {&run_tiles, nullptr, tiles, &copy};
  }
  return block_range(converts(copy.dst, copy.src) ? &run_conversion : &run_copy, copy);
}

Range fill_range(const FillWork& fill) noexcept { return block_range(&run_fill, fill); }

}  // namespace anabranch::cpu
