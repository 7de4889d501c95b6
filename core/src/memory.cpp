#include "anabranch/memory.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

#include "anabranch/backend.hpp"

namespace anabranch {
namespace {

// More entries than this are merged into one per stream.
constexpr std::size_t most_uses = 32;

// `failed`: the answer for work that failed, which touches nothing any more.
bool is_over(const Use& use, bool failed) noexcept {
  try {
    return use.stream->backend().query(*use.stream, use.used);
  } catch (const Error&) {
    return failed;
  }
}

// Counts down the uses that are still under way and cleans up after itself when the last one is over.
class Countdown {
 public:
  Countdown(std::vector<Use> uses, void (*done)(void*) noexcept, void* context)
      : uses_(std::move(uses)), done_(done), context_(context), left_(uses_.size() + 1) {
    waiters_ = std::make_unique<Arrival[]>(uses_.size());
  }

  void begin() noexcept {
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      waiters_[i].owner = this;
      Stream& stream = *uses_[i].stream;
      if (!stream.backend().notify(stream, uses_[i].used, waiters_[i])) arrive();
    }
    arrive();
  }

 private:
  struct Arrival final : Waiter {
    void wake(const Ref<Failure>&) noexcept override { owner->arrive(); }
    Countdown* owner = nullptr;
  };

  void arrive() noexcept {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    done_(context_);
    delete this;
  }

  std::vector<Use> uses_;
  std::unique_ptr<Arrival[]> waiters_;
  void (*done_)(void*) noexcept;
  void* context_;
  std::atomic<std::size_t> left_;
};

}  // namespace

// Records that are not in use, with the room for their uses: most arrays live for as long as an expression.
class Storage::Spares {
 public:
  Storage* take() noexcept {
    std::lock_guard guard(lock_);
    return count_ == 0 ? nullptr : storages_[--count_];
  }
  bool put(Storage& storage) noexcept {
    std::lock_guard guard(lock_);
    if (count_ == most) return false;
    storages_[count_++] = &storage;
    return true;
  }

 private:
  static constexpr std::size_t most = 64;
  SpinLock lock_;
  std::size_t count_ = 0;
  Storage* storages_[most];
};

Storage::Spares& Storage::spares() noexcept {
  static auto* const spares = new Spares;  // for as long as the process, whose last arrays go late
  return *spares;
}

Ref<Storage> Storage::make(Backend& backend, MemoryKind kind, std::byte* pointer, std::size_t bytes) {
  Storage* storage = spares().take();
  if (storage) {
    storage->revive();
  } else {
    storage = new Storage;
  }
  storage->backend_ = &backend;
  storage->kind_ = kind;
  storage->pointer_ = pointer;
  storage->bytes_ = bytes;
  storage->read_only_ = false;
  storage->owner_ = nullptr;
  storage->release_ = nullptr;
  return Ref<Storage>::take(storage);
}

Ref<Storage> Storage::allocate(Backend& backend, Stream* stream, std::size_t bytes, MemoryKind kind) {
  const Allocation allocation = bytes == 0 ? Allocation{} : backend.allocate(stream, bytes, kind);
  Ref<Storage> storage = make(backend, kind, allocation.pointer, bytes);
  // What the stream did with the memory before comes before anything that others do with it now.
  if (allocation.ready != 0)
    storage->uses_.push_back({Ref<Stream>::share(stream), allocation.ready, allocation.ready, {0, bytes}});
  return storage;
}

Ref<Storage> Storage::adopt(Backend& backend, void* pointer, std::size_t bytes, bool read_only, void* owner,
                            Release release) {
  Ref<Storage> storage = make(backend, MemoryKind::foreign, static_cast<std::byte*>(pointer), bytes);
  storage->read_only_ = read_only;
  storage->owner_ = owner;
  storage->release_ = release;
  return storage;
}

void Storage::note(Stream& stream, Point point, Access access, ByteRange bytes) {
  const bool writes = access != Access::read;
  std::vector<Use> finished;  // let go outside the lock, since that may recycle a stream
  std::lock_guard guard(lock_);
  for (Use& use : uses_) {
    if (use.stream.get() != &stream || use.bytes != bytes) continue;
    use.used = std::max(use.used, point);
    if (writes) use.wrote = std::max(use.wrote, point);
    return;
  }
  // A new entry is the time to forget those that are through, so that the list stays as short as what is in flight.
  forget_finished(finished);
  if (uses_.size() >= most_uses) merge_ranges();
  uses_.push_back({Ref<Stream>::share(&stream), writes ? point : 0, point, bytes});
}

void Storage::forget_finished(std::vector<Use>& finished) {
  // A failed write stays: who reads what it should have written is told so, every time.
  const auto stays = [](const Use& use) { return !is_over(use, use.wrote == 0); };
  auto through = std::partition(uses_.begin(), uses_.end(), stays);
  finished.assign(std::make_move_iterator(through), std::make_move_iterator(uses_.end()));
  uses_.erase(through, uses_.end());
}

// One entry per stream: later accesses wait for more than they must, but the list stays short.
void Storage::merge_ranges() {
  if (uses_.size() < 2) return;
  std::vector<Use> merged;
  for (Use& use : uses_) {
    auto same =
        std::find_if(merged.begin(), merged.end(), [&](const Use& other) { return other.stream == use.stream; });
    if (same == merged.end()) {
      merged.push_back(std::move(use));
    } else {
      same->wrote = std::max(same->wrote, use.wrote);
      same->used = std::max(same->used, use.used);
      same->bytes = {std::min(same->bytes.low, use.bytes.low), std::max(same->bytes.high, use.bytes.high)};
    }
  }
  uses_ = std::move(merged);
}

std::vector<Use> Storage::uses(Access access, ByteRange bytes) const {
  std::lock_guard guard(lock_);
  std::vector<Use> found;
  for (const Use& use : uses_) {
    if (!use.bytes.overlaps(bytes)) continue;
    if (access != Access::read) {
      found.push_back(use);
    } else if (use.wrote != 0) {
      found.push_back({use.stream, use.wrote, use.wrote, use.bytes});
    }
  }
  return found;
}

void Storage::dispose() noexcept {
  merge_ranges();
  give_back();
  uses_.clear();
  if (!spares().put(*this)) delete this;
}

void Storage::give_back() noexcept {
  if (kind_ != MemoryKind::foreign) {
    if (pointer_) backend_->free(pointer_, bytes_, kind_, uses_);
    return;
  }
  if (!release_) return;
  std::erase_if(uses_, [](const Use& use) { return is_over(use, true); });
  if (uses_.empty()) return release_(owner_);
  struct Owner {
    void* object;
    Release release;
  };
  after(
      std::move(uses_),
      [](void* context) noexcept {
        std::unique_ptr<Owner> owner(static_cast<Owner*>(context));
        owner->release(owner->object);
      },
      new Owner{owner_, release_});
}

void after(std::vector<Use> uses, void (*done)(void* context) noexcept, void* context) {
  (new Countdown(std::move(uses), done, context))->begin();
}

}  // namespace anabranch
