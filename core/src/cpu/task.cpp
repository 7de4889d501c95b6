#include "task.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

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

}  // namespace

Step WaitTask::start(CpuStream& stream, Ref<Failure>& failure) noexcept {
  if (!target_->reached(until_)) {
    stream_ = &stream;
    stream.rest();
    if (target_->add_waiter(*this, until_)) return Step::parked;
  }
  target_->reached(until_, &failure);
  return Step::done;
}

Step OtherWaitTask::start(CpuStream& stream, Ref<Failure>& failure) noexcept {
  stream_ = &stream;
  stream.rest();
  Backend& backend = target_->backend();
  try {
    if (backend.notify(*target_, until_, *this, marker_.get())) return Step::parked;
    backend.query(*target_, until_, marker_.get());
  } catch (const AsyncError& error) {
    failure = error.failure();
  } catch (const DriverError& error) {
    failure = make_ref<Failure>(error);
  } catch (const std::exception& error) {
    failure = make_ref<Failure>(error.what());
  }
  return Step::done;
}

Step PendingTask::start(CpuStream& stream, Ref<Failure>& failure) noexcept {
  // Kept here: once entered, the operation may complete and the task be gone before `start` is called.
  const Ref<Pending> pending = pending_;
  stream_ = &stream;
  if (pending->enter(&PendingTask::resume, this)) {
    pending->start();
    return Step::parked;
  }
  failure = pending->failure();
  return Step::done;
}

void PendingTask::resume(void* context) noexcept {
  auto* task = static_cast<PendingTask*>(context);
  task->stream_->complete(task->pending_->failure());
}

// The chunks of a range that are still to be taken. Outlives the task, since a helper may come late.
struct RangeTask::Shared final : RefCounted {
  Shared(RangeTask& task, CpuStream& stream, std::int64_t begin, std::int64_t chunk)
      : task(&task),
        stream(&stream),
        pool(stream.pool()),
        size(task.size_),
        chunk(chunk),
        next(begin),
        left(task.size_ - begin) {}

  RangeTask* task;    // valid as long as a chunk is left to run
  CpuStream* stream;  // likewise
  Pool& pool;
  const std::int64_t size;
  const std::int64_t chunk;
  std::atomic<std::int64_t> next;
  std::atomic<std::int64_t> left;
};

// Takes chunks on one more worker, then goes.
class RangeTask::Helper final : public Job {
 public:
  Helper(Ref<Shared> shared, bool urgent) : Job(urgent), shared_(std::move(shared)) {}

  void run() noexcept override {
    switch (take_chunks(*shared_, urgent())) {
      case Outcome::finished:
        shared_->task->note_end();
        shared_->stream->resume(nullptr);
        break;
      case Outcome::displaced:
        return shared_->pool.ready(*this);
      case Outcome::exhausted:
        break;
    }
    delete this;
  }

  enum class Outcome {
    finished,   // this ran the last of them
    exhausted,  // none is left to take; others still run
    displaced,  // something more urgent wants the worker
  };

  static Outcome take_chunks(Shared& shared, bool urgent) noexcept {
    while (true) {
      if (shared.pool.stopping()) return Outcome::exhausted;
      if (shared.pool.contended(urgent)) return Outcome::displaced;
      const std::int64_t begin = shared.next.fetch_add(shared.chunk, std::memory_order_relaxed);
      if (begin >= shared.size) return Outcome::exhausted;
      const std::int64_t end = std::min(begin + shared.chunk, shared.size);
      const RangeTask& task = *shared.task;
      task.function_(begin, end, task.shape_.dims, task.arguments());
      if (shared.left.fetch_sub(end - begin, std::memory_order_acq_rel) == end - begin) return Outcome::finished;
    }
  }

 private:
  Ref<Shared> shared_;
};

Step RangeTask::start(CpuStream& stream, Ref<Failure>&) noexcept {
  Pool& pool = stream.pool();
  std::int64_t begin = 0;
  std::int64_t elapsed = 0;
  if (size_ > 1) {
    const std::int64_t started = now_nanoseconds();
    for (std::int64_t step = 1; begin < size_ && elapsed < probe_ns; step *= 8) {
      const std::int64_t end = std::min(begin + step, size_);
      function_(begin, end, shape_.dims, arguments());
      begin = end;
      elapsed = now_nanoseconds() - started;
    }
  }
  const double per_index =
      static_cast<double>(std::max<std::int64_t>(elapsed, 1)) / static_cast<double>(std::max<std::int64_t>(begin, 1));
  const double remaining = per_index * static_cast<double>(size_ - begin);
  if (size_ <= 1 || begin == size_ || remaining < worth_sharing_ns) {
    if (begin < size_) function_(begin, size_, shape_.dims, arguments());
    return Step::done;
  }

  const double chunk_ns =
      std::clamp(remaining / (pool.workers() * 8), double{shortest_chunk_ns}, double{longest_chunk_ns});
  std::int64_t chunk = std::max<std::int64_t>(1, static_cast<std::int64_t>(chunk_ns / per_index));
  if (chunk > chunk_multiple) chunk -= chunk % chunk_multiple;
  const std::int64_t chunks = (size_ - begin + chunk - 1) / chunk;
  const bool urgent = stream.priority() < 0;
  auto shared = make_ref<Shared>(*this, stream, begin, chunk);
  const std::int64_t helpers = std::min<std::int64_t>(pool.workers() - 1, chunks - 1);
  for (std::int64_t i = 0; i < helpers; ++i) pool.ready(*new Helper(shared, urgent));
  switch (Helper::take_chunks(*shared, urgent)) {
    case Helper::Outcome::finished:
      return Step::done;
    case Helper::Outcome::displaced:
      pool.ready(*new Helper(shared, urgent));
      break;
    case Helper::Outcome::exhausted:
      break;
  }
  return Step::parked;
}

namespace {

class KernelTask final : public RangeTask {
 public:
  KernelTask(Kernel& kernel, const LaunchShape& shape, std::span<const std::uint64_t> arguments)
      : RangeTask(reinterpret_cast<RangeFunction>(kernel.code), shape), kernel_(Ref<Kernel>::share(&kernel)) {
    std::copy(arguments.begin(), arguments.end(), slots());  // of none too, whose address may be null
  }
  static void* operator new(std::size_t size, std::size_t slots) {
    return ::operator new(size + slots * sizeof(std::uint64_t));
  }
  static void operator delete(void* pointer) { ::operator delete(pointer); }
  static void operator delete(void* pointer, std::size_t) { ::operator delete(pointer); }

 private:
  std::uint64_t* slots() noexcept { return reinterpret_cast<std::uint64_t*>(this + 1); }
  const void* arguments() const noexcept override { return this + 1; }

  Ref<Kernel> kernel_;
};

// Copies and fills count in blocks of this many bytes, so that an index of theirs is not too small a thing.
constexpr std::int64_t block_bytes = 4096;

LaunchShape block_shape(std::int64_t count, std::int64_t itemsize) {
  const std::int64_t per_block = std::max<std::int64_t>(1, block_bytes / itemsize);
  LaunchShape shape;
  shape.dims[0] = (count + per_block - 1) / per_block;
  return shape;
}

struct CopyArguments {
  Elements dst;
  Elements src;
  std::int64_t count;
  std::int64_t per_block;

  static void run(std::int64_t begin, std::int64_t end, const std::int64_t*, const void* arguments) {
    const auto& copy = *static_cast<const CopyArguments*>(arguments);
    Elements dst = copy.dst;
    Elements src = copy.src;
    const std::int64_t first = begin * copy.per_block;
    dst.offset += first;
    src.offset += first;
    copy_elements(dst, src, std::min(end * copy.per_block, copy.count) - first);
  }
};

struct FillArguments {
  Elements dst;
  std::byte value[16];
  std::int64_t count;
  std::int64_t per_block;

  static void run(std::int64_t begin, std::int64_t end, const std::int64_t*, const void* arguments) {
    const auto& fill = *static_cast<const FillArguments*>(arguments);
    Elements dst = fill.dst;
    const std::int64_t first = begin * fill.per_block;
    dst.offset += first;
    fill_elements(dst, fill.value, std::min(end * fill.per_block, fill.count) - first);
  }
};

template <class Arguments>
class MemoryTask final : public RangeTask {
 public:
  MemoryTask(const Arguments& arguments, std::int64_t itemsize)
      : RangeTask(&Arguments::run, block_shape(arguments.count, itemsize)), arguments_(arguments) {}

 private:
  const void* arguments() const noexcept override { return &arguments_; }
  Arguments arguments_;
};

}  // namespace

std::unique_ptr<Task> make_kernel_task(Kernel& kernel, const LaunchShape& shape,
                                       std::span<const std::uint64_t> arguments) {
  return std::unique_ptr<Task>(new (arguments.size()) KernelTask(kernel, shape, arguments));
}

std::unique_ptr<Task> make_copy_task(const Elements& dst, const Elements& src, std::int64_t count) {
  const std::int64_t itemsize = dst.layout.itemsize;
  const CopyArguments arguments{dst, src, count, std::max<std::int64_t>(1, block_bytes / itemsize)};
  return std::make_unique<MemoryTask<CopyArguments>>(arguments, itemsize);
}

std::unique_ptr<Task> make_fill_task(const Elements& dst, const void* value, std::int64_t count) {
  const std::int64_t itemsize = dst.layout.itemsize;
  FillArguments arguments{dst, {}, count, std::max<std::int64_t>(1, block_bytes / itemsize)};
  std::memcpy(arguments.value, value, static_cast<std::size_t>(itemsize));
  return std::make_unique<MemoryTask<FillArguments>>(arguments, itemsize);
}

}  // namespace anabranch::cpu
