#include "anabranch/loan.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "anabranch/backend.hpp"

namespace anabranch {
namespace {

// Parts of a block that are lent and told apart.
constexpr std::size_t most_lent = 8;

// Never destroyed: the last arrays go late. Its mutex comes before the lock of a storage.
struct OpenLoans {
  std::mutex mutex;
  std::vector<Ref<Loan>> all;
  std::atomic<std::size_t> count{0};

  static OpenLoans& instance() {
    static auto* const loans = new OpenLoans;
    return *loans;
  }
};

}  // namespace

Ref<Loan> Loan::open(Ref<Stream> stream) {
  const Ref<Loan> loan = Ref<Loan>::take(new Loan(std::move(stream)));
  OpenLoans& open = OpenLoans::instance();
  std::lock_guard lock(open.mutex);
  open.all.push_back(loan);
  open.count.store(open.all.size(), std::memory_order_release);
  return loan;
}

void Loan::lend(Stream& stream, Storage& storage, ByteRange bytes) {
  OpenLoans& open = OpenLoans::instance();
  if (open.count.load(std::memory_order_acquire) == 0) return;
  std::lock_guard lock(open.mutex);
  for (const Ref<Loan>& loan : open.all) {
    if (loan->stream_.get() != &stream) continue;
    loan->storages_.insert(&storage);
    storage.lend(loan, bytes);
  }
}

void Loan::note(Stream& stream, Storage& storage, ByteRange bytes, HazardMode mode, Site site) {
  const Access access = storage.read_only() ? Access::read : Access::read_write;
  const Touch touch{&storage, bytes.low, bytes.high, nullptr, 0, access};
  stream.backend().legacy_lanes().join(stream);
  const Lane::Version snapshot = stream.lane().snapshot();
  Ordering::note(stream, stream.backend().newest(stream), {&touch, 1}, mode, site, snapshot);
}

void Loan::note(Storage& storage, const Stream* except) {
  if (!storage.several()) return;
  note_lent(storage, except);
  for (const Ref<Storage>& other : storage.neighbours()) note_lent(*other, except);
}

void Loan::note_lent(Storage& storage, const Stream* except) {
  for (const Lent& lent : storage.lent()) {
    if (lent.loan->stream_.get() != except) {
      note(*lent.loan->stream_, storage, lent.bytes, HazardMode::automatic, {});
    }
  }
}

void Loan::take_back(Storage& storage) noexcept {
  const std::vector<Lent> lent = storage.lent();
  {
    std::lock_guard lock(OpenLoans::instance().mutex);
    for (const Lent& each : lent) each.loan->storages_.erase(&storage);
  }
  for (const Lent& each : lent) note(*each.loan->stream_, storage, each.bytes, HazardMode::automatic, {});
  for (const Lent& each : lent) storage.end_loan(*each.loan);
}

void Loan::close(HazardMode mode, Site site) {
  OpenLoans& open = OpenLoans::instance();
  std::vector<Ref<Storage>> storages;
  {
    std::lock_guard lock(open.mutex);
    std::erase_if(open.all, [this](const Ref<Loan>& loan) { return loan.get() == this; });
    open.count.store(open.all.size(), std::memory_order_release);
    for (Storage* storage : storages_) {
      if (storage->try_retain()) storages.push_back(Ref<Storage>::take(storage));
    }
    storages_.clear();
  }
  for (const Ref<Storage>& storage : storages) {
    for (const Lent& lent : storage->end_loan(*this)) note(*stream_, *storage, lent.bytes, mode, site);
  }
}

void Storage::lend(const Ref<Loan>& loan, ByteRange bytes) {
  std::lock_guard guard(lock_);
  for (Lent& lent : lent_) {
    if (lent.loan != loan || !(lent.bytes.contains(bytes) || lent_.size() >= most_lent)) continue;
    lent.bytes = {std::min(lent.bytes.low, bytes.low), std::max(lent.bytes.high, bytes.high)};
    return;
  }
  lent_.push_back({loan, bytes});
  note_sole();
}

std::vector<Lent> Storage::lent() const {
  std::lock_guard guard(lock_);
  return lent_;
}

std::vector<Lent> Storage::end_loan(const Loan& loan) {
  std::lock_guard guard(lock_);
  const auto ended =
      std::partition(lent_.begin(), lent_.end(), [&loan](const Lent& lent) { return lent.loan.get() != &loan; });
  std::vector<Lent> over(std::make_move_iterator(ended), std::make_move_iterator(lent_.end()));
  lent_.erase(ended, lent_.end());
  note_sole();
  return over;
}

}  // namespace anabranch
