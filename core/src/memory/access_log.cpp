#include "anabranch/memory/access_log.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "anabranch/backend.hpp"
#include "anabranch/graph/capture.hpp"
#include "anabranch/hazard/external_use.hpp"
#include "anabranch/hazard/hazard.hpp"

namespace anabranch {
namespace {

// Few entries of one stream are not pruned. More than most are merged; checks need more of them apart.
constexpr std::size_t few_uses = 4;
constexpr std::size_t most_uses = 32;
constexpr std::size_t most_exact_uses = 1024;
// Parts of a block that are lent and told apart.
constexpr std::size_t most_lent = 8;

// Whether the use is completed. One that has failed is not: work may be pending before it that is known by it alone,
// and every later reader gets the failure.
bool is_completed(const Use& use) noexcept {
  if (use.stream->capture()) return false;
  // The same in every schedule.
  if (exploring()) return use.stream->backend().known_completed(*use.stream, use.point);
  try {
    return use.stream->backend().query(*use.stream, use.point);
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

bool AccessLog::note_own(const Touch& touch, const Noted& operation) {
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

void AccessLog::note_anew(const Touch& touch, const Noted& operation) {
  if (note_own(touch, operation)) return;
  note(operation.stream, operation.point, touch.access, touch.footprint(), operation.when, operation.site,
       operation.exact);
}

void AccessLog::note(Stream& stream, Point point, Access access, const Footprint& where, const Moment* when, Site site,
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

void AccessLog::forget(const Stream& stream) {
  std::vector<Use> over;  // as above
  std::lock_guard guard(lock_);
  std::vector<Use>& uses = history_.uses();
  const auto gone =
      std::partition(uses.begin(), uses.end(), [&stream](const Use& use) { return use.stream.get() != &stream; });
  over.assign(std::make_move_iterator(gone), std::make_move_iterator(uses.end()));
  uses.erase(gone, uses.end());
  note_sole();
}

void AccessLog::note_sole() noexcept {
  const void* who = lent_.empty() && !has_neighbours_ ? nullptr : this;
  for (const Use& use : history_.uses()) {
    const void* one = use.stream ? static_cast<const void*>(use.stream.get()) : this;
    who = !who || who == one ? one : this;
  }
  sole_.store(who, std::memory_order_release);
}

// Call this after adding an entry at the end.
void AccessLog::trim(std::vector<Use>& over, bool exact) {
  std::vector<Use>& uses = history_.uses();
  if (exact && uses.size() <= most_exact_uses) return;
  // With that much work in flight, the next check waits until the list has doubled.
  if (uses.size() > most_uses && uses.size() < trim_next_) return;
  const auto newest = uses.end() - 1;
  const auto through =
      std::partition(uses.begin(), newest, [](const Use& use) { return !use.stream || !is_completed(use); });
  over.assign(std::make_move_iterator(through), std::make_move_iterator(newest));
  uses.erase(through, newest);
  trim_next_ = 0;
  if (uses.size() <= (exact ? most_exact_uses : most_uses)) return;
  merge(true, exact);
  trim_next_ = 2 * uses.size();
}

void AccessLog::trim() {
  std::vector<Use> over;  // as above
  std::lock_guard guard(lock_);
  if (history_.uses().size() > few_uses) trim(over, checks_begun());
  note_sole();
}

// Merges the entries into one per stream, or one for its reads and one for its writes. Later accesses may wait for more
// than necessary, but the list stays short.
void AccessLog::merge(bool into_reads_and_writes, bool exact) {
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

void AccessLog::begin_with(std::vector<Use> uses) {
  history_.uses() = std::move(uses);
  note_sole();
}

void AccessLog::note_arrival(Stream& stream, Point point, Moment when, const Footprint& where) {
  history_.uses().push_back({Ref<Stream>::share(&stream), point, Access::write, true, false, std::move(when), where});
  note_sole();
}

void AccessLog::note_host(Moment when, Access access, const Footprint& where, Site site, const Moment& call) {
  std::lock_guard guard(lock_);
  history_.note({nullptr, 0, access, false, false, std::move(when), where, site, call});
  note_sole();
}

void AccessLog::begin_host(Moment when, Access access, const Footprint& where, Site site, const Moment& call) {
  std::lock_guard guard(lock_);
  history_.uses().push_back({nullptr, 0, access, false, true, std::move(when), where, site, call});
  note_sole();
}

void AccessLog::end_host(const Ref<LaneNumber>& lane, bool kept) {
  std::lock_guard guard(lock_);
  std::vector<Use>& uses = history_.uses();
  const auto own = [&lane](const Use& use) { return !use.stream && use.when.lane == lane; };
  const auto place = std::find_if(uses.begin(), uses.end(), own);
  if (place == uses.end()) return;
  Use use = std::move(*place);
  uses.erase(place);
  use.open = false;
  if (kept) history_.note(std::move(use));
  note_sole();
}

std::vector<Use> AccessLog::take_over(std::vector<Use> uses) {
  std::lock_guard guard(lock_);
  std::vector<Use> left = history_.join(std::move(uses));
  note_sole();
  return left;
}

std::vector<Use> AccessLog::uses(Access access, const Footprint& where) const {
  std::vector<Use> found;
  std::lock_guard guard(lock_);
  for (const Use& use : history_.uses()) {
    if (use.stream && (writes(access) || writes(use.access)) && use.where.overlaps(where)) found.push_back(use);
  }
  return found;
}

std::vector<Use> AccessLog::conflicts(const Past& before, const Stream* stream, Access access,
                                      const Footprint& where) const {
  std::lock_guard guard(lock_);
  return history_.conflicts(before, stream, access, where);
}

void AccessLog::lend(const Ref<ExternalUse>& use, ByteRange bytes) {
  std::lock_guard guard(lock_);
  for (Lent& lent : lent_) {
    if (lent.use != use || !(lent.bytes.contains(bytes) || lent_.size() >= most_lent)) continue;
    lent.bytes = {std::min(lent.bytes.low, bytes.low), std::max(lent.bytes.high, bytes.high)};
    return;
  }
  lent_.push_back({use, bytes});
  note_sole();
}

std::vector<Lent> AccessLog::lent() const {
  std::lock_guard guard(lock_);
  return lent_;
}

std::vector<Lent> AccessLog::end_external_use(const ExternalUse& use) {
  std::lock_guard guard(lock_);
  const auto ended =
      std::partition(lent_.begin(), lent_.end(), [&use](const Lent& lent) { return lent.use.get() != &use; });
  std::vector<Lent> over(std::make_move_iterator(ended), std::make_move_iterator(lent_.end()));
  lent_.erase(ended, lent_.end());
  note_sole();
  return over;
}

void AccessLog::set_neighbours(bool some) noexcept {
  std::lock_guard guard(lock_);
  has_neighbours_ = some;
  note_sole();
}

void AccessLog::drop_completed() { std::erase_if(history_.uses(), is_completed); }

void AccessLog::drop_host() {
  std::erase_if(history_.uses(), [](const Use& use) { return !use.stream; });
}

void AccessLog::clear() noexcept {
  history_.uses().clear();
  trim_next_ = 0;
  has_neighbours_ = false;
  sole_.store(nullptr, std::memory_order_relaxed);
}

}  // namespace anabranch
