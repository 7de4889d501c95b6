#include "anabranch/hazard/external_use.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "anabranch/backend.hpp"

namespace anabranch {
namespace {

// Never destroyed: the last arrays go late. Its mutex comes before the lock of a storage.
struct OpenUses {
  std::mutex mutex;
  std::vector<Ref<ExternalUse>> all;
  std::atomic<std::size_t> count{0};

  static OpenUses& instance() {
    static auto* const uses = new OpenUses;
    return *uses;
  }
};

}  // namespace

Ref<ExternalUse> ExternalUse::open(Ref<Stream> stream) {
  const Ref<ExternalUse> use = Ref<ExternalUse>::take(new ExternalUse(std::move(stream)));
  OpenUses& open = OpenUses::instance();
  std::lock_guard lock(open.mutex);
  open.all.push_back(use);
  open.count.store(open.all.size(), std::memory_order_release);
  return use;
}

void ExternalUse::lend(Stream& stream, Storage& storage, ByteRange bytes) {
  OpenUses& open = OpenUses::instance();
  if (open.count.load(std::memory_order_acquire) == 0) return;
  std::lock_guard lock(open.mutex);
  for (const Ref<ExternalUse>& use : open.all) {
    if (use->stream_.get() != &stream) continue;
    use->storages_.insert(&storage);
    storage.accesses().lend(use, bytes);
  }
}

void ExternalUse::note(Stream& stream, Storage& storage, ByteRange bytes, HazardMode mode, Site site) {
  const Access access = storage.read_only() ? Access::read : Access::read_write;
  const Touch touch{&storage, bytes.low, bytes.high, nullptr, 0, access, false};
  stream.backend().legacy_lanes().join(stream);
  const Lane::Version snapshot = stream.lane().snapshot();
  Ordering::note(stream, stream.backend().newest(stream), {&touch, 1}, mode, site, snapshot);
}

void ExternalUse::note(Storage& storage, const Stream* except) {
  if (!storage.accesses().several()) return;
  note_lent(storage, except);
  for (const Ref<Storage>& other : storage.neighbours()) note_lent(*other, except);
}

void ExternalUse::note_lent(Storage& storage, const Stream* except) {
  for (const Lent& lent : storage.accesses().lent()) {
    if (lent.use->stream_.get() != except) {
      note(*lent.use->stream_, storage, lent.bytes, HazardMode::automatic, {});
    }
  }
}

void ExternalUse::take_back(Storage& storage) noexcept {
  const std::vector<Lent> lent = storage.accesses().lent();
  {
    std::lock_guard lock(OpenUses::instance().mutex);
    for (const Lent& each : lent) each.use->storages_.erase(&storage);
  }
  for (const Lent& each : lent) note(*each.use->stream_, storage, each.bytes, HazardMode::automatic, {});
  for (const Lent& each : lent) storage.accesses().end_external_use(*each.use);
}

void ExternalUse::close(HazardMode mode, Site site) {
  OpenUses& open = OpenUses::instance();
  std::vector<Ref<Storage>> storages;
  {
    std::lock_guard lock(open.mutex);
    std::erase_if(open.all, [this](const Ref<ExternalUse>& use) { return use.get() == this; });
    open.count.store(open.all.size(), std::memory_order_release);
    for (Storage* storage : storages_) {
      if (storage->try_retain()) storages.push_back(Ref<Storage>::take(storage));
    }
    storages_.clear();
  }
  for (const Ref<Storage>& storage : storages) {
    for (const Lent& lent : storage->accesses().end_external_use(*this))
      note(*stream_, *storage, lent.bytes, mode, site);
  }
}

}  // namespace anabranch
