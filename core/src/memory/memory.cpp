#include "anabranch/memory/memory.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "anabranch/backend.hpp"
#include "anabranch/graph/capture.hpp"
#include "anabranch/hazard/external_use.hpp"
#include "anabranch/hazard/hazard.hpp"
#include "known_memory.hpp"

namespace anabranch {
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
  storage->owner_ = nullptr;
  storage->release_ = nullptr;
  storage->site = {};
  storage->listed = false;
  storage->explored = 0;
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
    storage->accesses_.note_arrival(*stream, ready, std::move(when), {0, bytes});
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
    storage->accesses_.note_arrival(stream, std::max(newest, stream.issued()), std::move(when), {0, bytes});
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

std::vector<Use> Storage::uses(Access access, const Footprint& where) const {
  std::vector<Use> found;
  const auto add = [&](const Storage& storage, const Footprint& there) {
    std::vector<Use> more = storage.accesses_.uses(access, there);
    found.insert(found.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  // This storage comes last: a neighbour that ends meanwhile has passed its entries on to it.
  const std::vector<Ref<Storage>> others = neighbours();
  for (const Ref<Storage>& other : others) add(*other, where.moved(pointer_ - other->pointer_));
  add(*this, where);
  return found;
}

std::vector<Use> Storage::conflicts(const Past& before, const Stream* stream, Access access,
                                    const Footprint& where) const {
  if (!accesses_.has_neighbours()) return accesses_.conflicts(before, stream, access, where);
  std::vector<Use> theirs;
  const std::vector<Ref<Storage>> others = neighbours();
  for (const Ref<Storage>& other : others) {
    const std::ptrdiff_t distance = pointer_ - other->pointer_;
    for (Use& use : other->accesses_.conflicts(before, stream, access, where.moved(distance))) {
      use.where = use.where.moved(-distance);
      theirs.push_back(std::move(use));
    }
  }
  std::vector<Use> found = accesses_.conflicts(before, stream, access, where);  // last, as above
  found.insert(found.end(), std::make_move_iterator(theirs.begin()), std::make_move_iterator(theirs.end()));
  return found;
}

// Runs on any thread, with or without the interpreter lock, with no lock of the core held. Takes the locks of open
// external uses, of known memory and of the backend, one at a time. `lock_` is not needed: only known memory and
// external uses can still find the storage, and both fail to retain it. Does not block: a pending use delays the
// release.
void Storage::dispose() noexcept {
  if (original_) {
    original_.reset();
    return recycle();
  }
  if (accesses_.is_lent()) [[unlikely]]
    ExternalUse::take_back(*this);
  accesses_.drop_host();
  KnownMemory::Gone* gone = nullptr;
  if (known_) {
    // Memory of this library ends here. Another library may hand its memory in again.
    std::vector<Use> all;
    std::vector<Use> under_way;
    if (kind_ == MemoryKind::foreign && release_) {
      // Checks test the order after completed uses, too, as long as someone has the memory.
      if (checks_begun()) all = accesses_.all();
      accesses_.drop_completed();
      under_way = accesses_.all();
    }
    gone = KnownMemory::instance().remove(*this, all.empty() ? under_way : all, under_way);
  }
  accesses_.merge();
  if (listed && tracing() && !backend_->capture()) trace_end();
  give_back(gone);
  recycle();
}

void Storage::recycle() noexcept {
  accesses_.clear();
  if (!spares().put(*this)) delete this;
}

void Storage::trace_end() noexcept {
  try {
    const std::vector<Use>& uses = accesses_.all();
    trace_instant(
        *backend_,
        {.kind = OperationKind::free, .stream = uses.empty() ? nullptr : uses.back().stream, .bytes = bytes_});
  } catch (const std::exception&) {
    return;  // out of memory
  }
}

void Storage::give_back(void* gone) noexcept {
  std::vector<Use>& uses = accesses_.all();
  if (!release_) {
    if (kind_ != MemoryKind::foreign && pointer_) backend_->free(pointer_, bytes_, kind_, uses);
    return;
  }
  const Ref<Stream> home = std::move(home_);
  std::erase_if(uses, [&home](const Use& use) {
    return home && use.stream == home && home->backend().flush(*home, use.point, {});
  });
  accesses_.drop_completed();
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

}  // namespace anabranch
