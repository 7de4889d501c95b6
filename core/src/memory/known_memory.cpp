#include "known_memory.hpp"

#include <sched.h>

#include <algorithm>

#include "anabranch/backend.hpp"

namespace anabranch {
namespace {

// The address space of a backend: devices with host memory share that of the process. A capture has its own, because
// its shadows have the addresses of other storages.
const void* space_of(Backend& backend) noexcept {
  static const char host = 0;
  const bool real = !backend.capture();
  return real && backend.capabilities().host_memory ? static_cast<const void*>(&host) : &backend;
}

bool share(const std::byte* a, std::size_t a_bytes, const std::byte* b, std::size_t b_bytes) noexcept {
  return a < b + b_bytes && b < a + a_bytes;
}

bool share(const Storage& a, const Storage& b) noexcept {
  return &a != &b && share(a.pointer(), a.bytes(), b.pointer(), b.bytes());
}

// The uses of one block as uses of another, which begins `distance` bytes before it. Leaves out uses that touch none of
// its bytes.
std::vector<Use> moved(std::vector<Use> uses, std::ptrdiff_t distance, std::size_t bytes) {
  for (Use& use : uses) use.where = use.where.moved(distance);
  std::erase_if(uses, [bytes](const Use& use) { return !use.where.bytes().overlaps({0, bytes}); });
  for (Use& use : uses) {
    const ByteRange range = use.where.bytes();
    if (use.where.whole()) use.where = {range.low, std::min(range.high, bytes)};
  }
  return uses;
}

void append(std::vector<Use>& uses, std::vector<Use> more) {
  uses.insert(uses.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

KnownMemory& KnownMemory::instance() {
  static auto* const known = new KnownMemory;  // never destroyed, because arrays may be released late
  return *known;
}

// The first extent that ends after an address.
KnownMemory::Extents::iterator KnownMemory::first_after(Backend& backend, const std::byte* pointer) {
  const void* space = space_of(backend);
  const auto next = extents_.upper_bound({space, pointer});
  if (next == extents_.begin()) return next;
  const auto before = std::prev(next);
  return before->first.first == space && before->second.end > pointer ? before : next;
}

KnownMemory::Extent& KnownMemory::claim(Backend& backend, const std::byte* pointer, std::size_t bytes) {
  const void* space = space_of(backend);
  const std::byte* begin = pointer;
  Extent whole;
  whole.end = pointer + bytes;
  auto place = first_after(backend, pointer);
  while (place != extents_.end() && place->first.first == space && place->first.second < whole.end) {
    begin = std::min(begin, place->first.second);
    Extent& part = place->second;
    whole.end = std::max(whole.end, part.end);
    whole.blocks.insert(whole.blocks.end(), part.blocks.begin(), part.blocks.end());
    std::move(part.gone.begin(), part.gone.end(), std::back_inserter(whole.gone));
    place = extents_.erase(place);
  }
  return extents_[{space, begin}] = std::move(whole);
}

void KnownMemory::drop_if_empty(Extents::iterator place) {
  if (place->second.blocks.empty() && place->second.gone.empty()) extents_.erase(place);
}

std::vector<Ref<Storage>> KnownMemory::sharing(const Extent& extent, const Storage& storage) {
  std::vector<Ref<Storage>> found;
  for (Storage* other : extent.blocks) {
    if (share(*other, storage) && other->try_retain()) found.push_back(Ref<Storage>::take(other));
  }
  return found;
}

Ref<Storage> KnownMemory::find(Backend& backend, const std::byte* pointer, std::size_t bytes) {
  for (;; sched_yield()) {
    std::lock_guard lock(mutex_);
    bool ending = false;
    auto place = first_after(backend, pointer);
    for (; place != extents_.end() && place->first.first == space_of(backend); ++place) {
      if (place->first.second >= pointer + bytes) break;
      for (Storage* storage : place->second.blocks) {
        if (!share(storage->pointer(), storage->bytes(), pointer, bytes)) continue;
        const bool whole = storage->pointer() <= pointer && pointer + bytes <= storage->pointer() + storage->bytes();
        if (whole && storage->try_retain()) return Ref<Storage>::take(storage);
        ending = ending || storage->ending();
      }
    }
    // Another thread is about to remove a block from the list, and its pending uses are known only then.
    if (!ending) return nullptr;
  }
}

void KnownMemory::add(Storage& storage) {
  std::vector<Ref<Storage>> others;  // released outside the lock, because this may unlist a storage
  std::vector<Use> over;             // also outside, because this may recycle a stream
  std::lock_guard lock(mutex_);
  if (storage.known_) return;
  Extent& extent = claim(*storage.backend_, storage.pointer_, storage.bytes_);
  others = sharing(extent, storage);
  extent.blocks.push_back(&storage);
  storage.known_ = true;
  for (const std::unique_ptr<Gone>& gone : extent.gone) {
    if (share(gone->pointer, gone->bytes, storage.pointer_, storage.bytes_)) {
      append(over, storage.accesses().take_over(moved(gone->uses, gone->pointer - storage.pointer_, storage.bytes_)));
    }
  }
  // A block that is about to be removed counts until it is.
  const bool some =
      std::any_of(extent.blocks.begin(), extent.blocks.end(), [&](Storage* each) { return share(*each, storage); });
  if (some) storage.accesses().set_neighbours(true);
  for (const Ref<Storage>& other : others) other->accesses().set_neighbours(true);
}

KnownMemory::Gone* KnownMemory::remove(Storage& storage, const std::vector<Use>& uses, std::vector<Use> under_way) {
  std::vector<Ref<Storage>> others;  // as above
  Gone* const gone = leave(storage, uses, std::move(under_way), others);
  for (const Ref<Storage>& other : others) other->accesses().trim();
  return gone;
}

KnownMemory::Gone* KnownMemory::leave(Storage& storage, const std::vector<Use>& uses, std::vector<Use> under_way,
                                      std::vector<Ref<Storage>>& others) {
  std::vector<Use> over;  // as in `add`
  Ref<Storage> last;
  std::lock_guard lock(mutex_);
  const auto place = first_after(*storage.backend_, storage.pointer_);
  Extent& extent = place->second;
  std::erase(extent.blocks, &storage);
  storage.known_ = false;
  if (!uses.empty()) others = sharing(extent, storage);
  for (const Ref<Storage>& other : others) {
    append(over, other->accesses().take_over(moved(uses, storage.pointer_ - other->pointer_, other->bytes_)));
  }
  // A block left without neighbours is not searched for neighbours any more, now that it has taken over their accesses.
  if (extent.blocks.size() == 1 && extent.blocks.front()->accesses().has_neighbours() &&
      extent.blocks.front()->try_retain()) {
    last = Ref<Storage>::take(extent.blocks.front());
    last->accesses().set_neighbours(false);
  }
  if (under_way.empty()) {
    drop_if_empty(place);
    return nullptr;
  }
  extent.gone.push_back(
      std::make_unique<Gone>(storage.backend_, storage.pointer_, storage.bytes_, std::move(under_way)));
  return extent.gone.back().get();
}

void KnownMemory::forget(Gone* gone) {
  std::unique_ptr<Gone> last;  // released outside the lock, because this may recycle a stream
  std::lock_guard lock(mutex_);
  const auto place = first_after(*gone->backend, gone->pointer);
  std::vector<std::unique_ptr<Gone>>& all = place->second.gone;
  const auto it = std::find_if(all.begin(), all.end(), [gone](const auto& each) { return each.get() == gone; });
  last = std::move(*it);
  all.erase(it);
  drop_if_empty(place);
}

std::vector<Ref<Storage>> KnownMemory::neighbours(const Storage& storage) {
  for (;; sched_yield()) {
    std::vector<Ref<Storage>> found;  // as in `add`
    std::lock_guard lock(mutex_);
    const Extent& extent = first_after(storage.backend(), storage.pointer())->second;
    found = sharing(extent, storage);
    // As in `find`. Checked afterwards: a last reference may be dropped at any time.
    const bool ending =
        std::any_of(extent.blocks.begin(), extent.blocks.end(), [](Storage* each) { return each->ending(); });
    if (!ending) return found;
  }
}

Ref<Storage> Storage::adopt(Backend& backend, void* pointer, std::size_t bytes, bool read_only, void* owner,
                            Release release) {
  auto* const first = static_cast<std::byte*>(pointer);
  if (Ref<Storage> known = bytes == 0 ? nullptr : KnownMemory::instance().find(backend, first, bytes)) {
    if (!read_only) known->read_only_.store(false, std::memory_order_relaxed);
    if (release) release(owner);  // the known storage keeps the memory alive
    return known;
  }
  Ref<Storage> storage = make(backend, MemoryKind::foreign, first, bytes);
  storage->read_only_ = read_only;
  storage->owner_ = owner;
  storage->release_ = release;
  if (bytes != 0) KnownMemory::instance().add(*storage);
  return storage;
}

void Storage::share() {
  if (known_ || bytes_ == 0 || original_ || backend_->capture()) return;
  KnownMemory::instance().add(*this);
}

std::vector<Ref<Storage>> Storage::find_neighbours() const { return KnownMemory::instance().neighbours(*this); }

bool Storage::kept_by_neighbours(ByteRange bytes) const {
  std::vector<Ref<Storage>> others = neighbours();
  std::sort(others.begin(), others.end(), [](const auto& a, const auto& b) { return a->pointer_ < b->pointer_; });
  const std::byte* kept = pointer_ + bytes.low;  // all bytes up to here are kept
  for (const Ref<Storage>& other : others) {
    if (other->pointer_ <= kept) kept = std::max<const std::byte*>(kept, other->pointer_ + other->bytes_);
  }
  return kept >= pointer_ + std::min(bytes.high, bytes_);
}

}  // namespace anabranch
