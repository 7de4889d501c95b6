// Accesses to memory by the host.
#include <algorithm>
#include <mutex>
#include <utility>

#include "anabranch/memory.hpp"

namespace anabranch {

void Storage::note_host(Moment when, Access access, const Footprint& where, Site site, const Moment& call) {
  std::lock_guard guard(lock_);
  history_.note({nullptr, 0, access, false, false, std::move(when), where, site, call});
  note_sole();
}

void Storage::begin_host(Moment when, Access access, const Footprint& where, Site site, const Moment& call) {
  std::lock_guard guard(lock_);
  history_.uses().push_back({nullptr, 0, access, false, true, std::move(when), where, site, call});
  note_sole();
}

void Storage::end_host(const Ref<LaneNumber>& lane, bool kept) {
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

}  // namespace anabranch
