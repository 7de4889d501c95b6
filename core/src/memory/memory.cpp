#include "anabranch/memory.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "anabranch/backend.hpp"
#include "anabranch/capture.hpp"
#include "anabranch/hazard.hpp"
#include "anabranch/loan.hpp"
#include "known_memory.hpp"

namespace anabranch {
namespace {

// Few entries of one stream are not pruned. More than most are merged; checks need more of them apart.
constexpr std::size_t few_uses = 4;
constexpr std::size_t most_uses = 32;
constexpr std::size_t most_exact_uses = 1024;

// `failed`: the answer for failed work, which no longer touches anything.
bool is_over(const Use& use, bool failed) noexcept {
  if (use.stream->capture()) return false;
  if (exploring()) return use.stream->backend().known_completed(*use.stream, use.point);  // the same in every schedule
  try {
    return use.stream->backend().query(*use.stream, use.point);
  } catch (const Error&) {
    return failed;
  }
}

// Counts the pending uses and deletes itself when the last one is completed.
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
      if (!stream.backend().notify(stream, uses_[i].point, waiters_[i])) arrive();
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

// Unused storage objects, with the capacity of their histories: most arrays live only for one expression.
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
  static auto* const spares = new Spares;  // never destroyed, because arrays may be released late
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
  storage->known_ = false;
  storage->has_neighbours_ = false;
  storage->owner_ = nullptr;
  storage->release_ = nullptr;
  storage->site = {};
  storage->listed = false;
  storage->trim_next_ = storage->explored = 0;
  return Ref<Storage>::take(storage);
}

Ref<Storage> Storage::allocate(Backend& backend, Stream* stream, std::size_t bytes, MemoryKind kind) {
  const Lane::Version snapshot = stream ? stream->lane().snapshot() : 0;
  const Allocation allocation = bytes == 0 ? Allocation{} : backend.allocate(stream, bytes, kind);
  Ref<Storage> storage = make(backend, kind, allocation.pointer, bytes);
  if (backend.capture()) [[unlikely]]
    backend.capture()->own(*storage, *stream);
  // The stream's earlier uses of the memory come before accesses by others.
  if (allocation.ready != 0) {
    Moment when = stream->lane().advance(snapshot);
    const Point ready = std::max(allocation.ready, stream->issued());  // as in Ordering::note
    storage->history_.uses().push_back(
        {Ref<Stream>::share(stream), ready, Access::write, true, false, std::move(when), {0, bytes}});
    storage->note_sole();
  }
  return storage;
}

Ref<Storage> Storage::entrust(Stream& stream, void* pointer, std::size_t bytes, void* owner, Release release) {
  Backend& backend = stream.backend();
  Ref<Storage> storage = make(backend, MemoryKind::device, static_cast<std::byte*>(pointer), bytes);
  if (!backend.capabilities().host_memory) {
    // That stream may use the memory at once; other streams come after it.
    const Lane::Version snapshot = stream.lane().snapshot();
    const Point newest = backend.newest(stream);
    Moment when = stream.lane().advance(snapshot);
    storage->history_.uses().push_back({Ref<Stream>::share(&stream),
                                        std::max(newest, stream.issued()),
                                        Access::write,
                                        true,
                                        false,
                                        std::move(when),
                                        {0, bytes}});
    storage->note_sole();
    if (stream.role() != StreamRole::per_thread) storage->home_ = Ref<Stream>::share(&stream);
  }
  storage->owner_ = owner;
  storage->release_ = release;
  return storage;
}

Ref<Storage> Storage::alias(Ref<Storage> of) {
  Ref<Storage> storage = make(of->backend(), of->kind(), of->pointer(), of->bytes());
  storage->read_only_ = of->read_only();
  storage->original_ = std::move(of);
  return storage;
}

bool Storage::note_own(const Touch& touch, const Noted& operation) {
  const std::lock_guard guard(lock_, std::adopt_lock);
  if (touch.layout || !only(operation.stream)) return false;
  if (history_.renew(touch, operation)) return true;
  std::vector<Use>& uses = history_.uses();
  if (uses.size() >= few_uses) return false;
  uses.push_back({Ref<Stream>::share(&operation.stream),
                  operation.point,
                  touch.access,
                  false,
                  false,
                  operation.when ? *operation.when : Moment{},
                  {touch.low, touch.high},
                  operation.site});
  sole_.store(&operation.stream, std::memory_order_release);
  return true;
}

void Storage::note_anew(const Touch& touch, const Noted& operation) {
  if (note_own(touch, operation)) return;
  note(operation.stream, operation.point, touch.access, touch.footprint(), operation.when, operation.site,
       operation.exact);
}

void Storage::note(Stream& stream, Point point, Access access, const Footprint& where, const Moment* when, Site site,
                   bool exact, bool unreported) {
  std::vector<Use> over;  // released outside the lock, because this may recycle a stream
  std::lock_guard guard(lock_);
  Use use{Ref<Stream>::share(&stream), point, access, unreported, false, when ? *when : Moment{}, where, site};
  const bool more = history_.note(std::move(use));
  // Prunes completed entries whenever an entry is added, so that the list stays as short as the work in flight. This
  // queries the driver, which does not pay for the few entries of a single stream.
  if (more && (!only(stream) || history_.uses().size() > few_uses)) trim(over, exact);
  note_sole();
}

void Storage::forget(const Stream& stream) {
  std::vector<Use> over;  // as above
  std::lock_guard guard(lock_);
  std::vector<Use>& uses = history_.uses();
  const auto gone =
      std::partition(uses.begin(), uses.end(), [&stream](const Use& use) { return use.stream.get() != &stream; });
  over.assign(std::make_move_iterator(gone), std::make_move_iterator(uses.end()));
  uses.erase(gone, uses.end());
  note_sole();
}

void Storage::note_sole() noexcept {
  const void* who = lent_.empty() && !has_neighbours_ ? nullptr : this;
  for (const Use& use : history_.uses()) {
    const void* one = use.stream ? static_cast<const void*>(use.stream.get()) : this;
    who = !who || who == one ? one : this;
  }
  sole_.store(who, std::memory_order_release);
}

// Call this after adding an entry at the end.
void Storage::trim(std::vector<Use>& over, bool exact) {
  std::vector<Use>& uses = history_.uses();
  if (exact && uses.size() <= most_exact_uses) return;
  // With that much work in flight, the next check waits until the list has doubled.
  if (uses.size() > most_uses && uses.size() < trim_next_) return;
  // A failed write stays, so that every later reader gets the failure.
  const auto newest = uses.end() - 1;
  const auto through = std::partition(uses.begin(), newest,
                                      [](const Use& use) { return !use.stream || !is_over(use, !writes(use.access)); });
  over.assign(std::make_move_iterator(through), std::make_move_iterator(newest));
  uses.erase(through, newest);
  trim_next_ = 0;
  if (uses.size() <= (exact ? most_exact_uses : most_uses)) return;
  merge(true, exact);
  trim_next_ = 2 * uses.size();
}

void Storage::trim() {
  std::vector<Use> over;  // as above
  std::lock_guard guard(lock_);
  if (history_.uses().size() > few_uses) trim(over, checks_begun());
  note_sole();
}

// Merges the entries into one per stream, or one for its reads and one for its writes. Later accesses may wait for more
// than necessary, but the list stays short.
void Storage::merge(bool into_reads_and_writes, bool exact) {
  std::vector<Use>& uses = history_.uses();
  if (uses.size() < 2) return;
  std::vector<Use> merged;
  for (Use& use : uses) {
    auto same = std::find_if(merged.begin(), merged.end(), [&](const Use& other) {
      return other.stream && other.stream == use.stream &&
             (!into_reads_and_writes || writes(other.access) == writes(use.access));
    });
    if (same == merged.end()) {
      merged.push_back(std::move(use));
      continue;
    }
    const ByteRange& one = same->where.bytes();
    const ByteRange& two = use.where.bytes();
    same->where = {std::min(one.low, two.low), std::max(one.high, two.high)};
    if (use.access != same->access) same->access = Access::read_write;
    same->unreported = same->unreported && use.unreported;
    // An access that comes after the newest comes after all of the stream's. But no report may name an access to bytes
    // that only lie between the merged ones.
    const bool newer = use.point >= same->point;
    if (newer) same->point = use.point;
    if (exact) {
      same->when = {};
    } else if (newer) {
      same->when = std::move(use.when);
    }
  }
  uses = std::move(merged);
}

std::vector<Use> Storage::uses(Access access, const Footprint& where) const {
  std::vector<Use> found;
  const auto look = [&](const Storage& storage, const Footprint& there) {
    std::lock_guard guard(storage.lock_);
    for (const Use& use : storage.history_.uses()) {
      if (use.stream && (writes(access) || writes(use.access)) && use.where.overlaps(there)) found.push_back(use);
    }
  };
  // This storage comes last: a neighbour that ends meanwhile has passed its entries on to it.
  const std::vector<Ref<Storage>> others = neighbours();
  for (const Ref<Storage>& other : others) look(*other, where.moved(pointer_ - other->pointer_));
  look(*this, where);
  return found;
}

std::vector<Use> Storage::conflicts(const Past& before, const Stream* stream, Access access,
                                    const Footprint& where) const {
  const auto own = [&] {
    std::lock_guard guard(lock_);
    return history_.conflicts(before, stream, access, where);
  };
  if (!has_neighbours_) return own();
  std::vector<Use> theirs;
  const std::vector<Ref<Storage>> others = neighbours();
  for (const Ref<Storage>& other : others) {
    const std::ptrdiff_t distance = pointer_ - other->pointer_;
    std::lock_guard guard(other->lock_);
    for (Use& use : other->history_.conflicts(before, stream, access, where.moved(distance))) {
      use.where = use.where.moved(-distance);
      theirs.push_back(std::move(use));
    }
  }
  std::vector<Use> found = own();  // last, as above
  found.insert(found.end(), std::make_move_iterator(theirs.begin()), std::make_move_iterator(theirs.end()));
  return found;
}

// Runs on any thread, with or without the interpreter lock, with no lock of the core held. Takes the locks of open
// loans, of known memory and of the backend, one at a time. `lock_` is not needed: only known memory and loans can
// still find the storage, and both fail to retain it. Does not block: a pending use delays the release.
void Storage::dispose() noexcept {
  if (original_) {
    original_.reset();
    history_.uses().clear();
    sole_.store(nullptr, std::memory_order_relaxed);
    if (!spares().put(*this)) delete this;
    return;
  }
  if (!lent_.empty()) [[unlikely]]
    Loan::take_back(*this);
  std::vector<Use>& uses = history_.uses();
  std::erase_if(uses, [](const Use& use) { return !use.stream; });
  KnownMemory::Gone* gone = nullptr;
  if (known_) {
    // Memory of this library ends here. Another library may hand its memory in again.
    std::vector<Use> all;
    std::vector<Use> under_way;
    if (kind_ == MemoryKind::foreign && release_) {
      // Checks test the order after completed uses, too, as long as someone has the memory.
      if (checks_begun()) all = uses;
      std::erase_if(uses, [](const Use& use) { return is_over(use, true); });
      under_way = uses;
    }
    gone = KnownMemory::instance().remove(*this, all.empty() ? under_way : all, under_way);
  }
  merge(false, false);
  if (listed && tracing() && !backend_->capture()) trace_end();
  give_back(gone);
  history_.uses().clear();
  sole_.store(nullptr, std::memory_order_relaxed);
  if (!spares().put(*this)) delete this;
}

void Storage::trace_end() noexcept {
  try {
    const std::vector<Use>& uses = history_.uses();
    trace_instant(
        *backend_,
        {.kind = OperationKind::free, .stream = uses.empty() ? nullptr : uses.back().stream, .bytes = bytes_});
  } catch (const std::exception&) {
    return;  // out of memory
  }
}

void Storage::give_back(void* gone) noexcept {
  std::vector<Use>& uses = history_.uses();
  if (!release_) {
    if (kind_ != MemoryKind::foreign && pointer_) backend_->free(pointer_, bytes_, kind_, uses);
    return;
  }
  const Ref<Stream> home = std::move(home_);
  std::erase_if(uses, [&home](const Use& use) {
    const bool in_order = home && use.stream == home && home->backend().flush(*home, use.point, {});
    return in_order || is_over(use, true);
  });
  struct Owner {
    void* object;
    Release release;
    KnownMemory::Gone* gone;
    void let_go() const noexcept {
      if (gone) KnownMemory::instance().forget(gone);
      release(object);
    }
  };
  const Owner owner{owner_, release_, static_cast<KnownMemory::Gone*>(gone)};
  if (uses.empty()) return owner.let_go();
  after(
      std::move(uses), [](void* context) noexcept { std::unique_ptr<Owner>(static_cast<Owner*>(context))->let_go(); },
      new Owner(owner));
}

void after(std::vector<Use> uses, void (*done)(void* context) noexcept, void* context) {
  (new Countdown(std::move(uses), done, context))->begin();
}

}  // namespace anabranch
