#include "anabranch/hazard/submission.hpp"

#include <algorithm>

#include "anabranch/graph/capture.hpp"
#include "anabranch/hazard/external_use.hpp"
#include "anabranch/hazard/host_order.hpp"
#include "explore/controller.hpp"

namespace anabranch {
namespace {

// The touches of the shadows of the memory within a capture. Valid until this thread's next call.
const std::vector<Touch>& shadows_of(Capture& capture, std::span<const Touch> touches) {
  thread_local std::vector<Touch> shadows;
  capture.shadow(touches, shadows);
  return shadows;
}

// Takes out accesses within a host function that also declared them, or that another access comes after: order after
// that is order after the function.
void drop_implied(std::vector<Race>& races, const HostTask& task) {
  const auto by_function = [](const Race& race) { return static_cast<bool>(race.first.call.lane); };
  if (std::none_of(races.begin(), races.end(), by_function)) return;
  const std::vector<Race> all = races;
  std::erase_if(races, [&](const Race& race) {
    return std::any_of(all.begin(), all.end(), [&](const Race& other) {
      return !task.ignores(other.first) && race.first.ends_before(other.first);
    });
  });
}

}  // namespace

KeptMemory::KeptMemory(const Touch* touches, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    Ref<Storage> storage = Ref<Storage>::share(touches[i].storage);
    if (std::find(storages_.begin(), storages_.end(), storage) == storages_.end())
      storages_.push_back(std::move(storage));
  }
}

bool KeptMemory::given_up() const noexcept {
  return std::any_of(storages_.begin(), storages_.end(), [](const auto& storage) { return storage->unique(); });
}

Refusal* Submission::add_missing(const HostTask& task, std::span<const Touch> touches) {
  for (const Touch& touch : touches) ExternalUse::note(*touch.storage, stream_);
  Ordering ordering(*stream_, task.lane);
  std::vector<Race> missing;
  std::vector<Race> races;  // with accesses that the host has not ended: no stream can wait for those
  std::vector<Race> all = ordering.missing(touches);
  drop_implied(all, task);
  for (Race& race : all) (race.first.open ? races : missing).push_back(std::move(race));
  if (races.empty()) {
    ordering.add(missing, task);
    return nullptr;
  }
  return new Refusal{std::move(races),
                     {touches.begin(), touches.end()},
                     Ref<Stream>::share(stream_),
                     KeptMemory(touches.data(), touches.size()),
                     std::move(missing)};
}

Refusal* Submission::check(const HostTask& task, std::span<const Touch> touches) {
  // A refused operation must not update the stream's clock: another thread's next operation does not come after it.
  Ordering ordering(*stream_, task.lane);
  std::vector<Race> races;
  std::vector<Race> unreported;
  std::vector<Race> all = ordering.missing(touches, ordering.coming());
  drop_implied(all, task);
  for (Race& race : all) {
    // Accesses made under `off`, and the memory's arrival on its stream, are never reported.
    if (race.first.unreported || !race.first.when.lane) {
      unreported.push_back(std::move(race));
    } else if (!task.ignores(race.first)) {
      races.push_back(std::move(race));
    }
  }
  if (races.empty()) {
    ordering.begin();
    ordering.add(unreported, task);
    return nullptr;
  }
  return new Refusal{std::move(races),
                     {touches.begin(), touches.end()},
                     Ref<Stream>::share(stream_),
                     KeptMemory(touches.data(), touches.size()),
                     std::move(unreported)};
}

bool Submission::proceed(const HostTask& task, const Refusal& refusal) {
  if (refusal.memory.given_up()) return false;
  Ordering ordering(*stream_, task.lane);
  ordering.begin();
  ordering.add(refusal.unreported, task);
  start();
  return true;
}

void Submission::observe() {
  if (explore::Controller* controller = explore::Controller::current()) controller->expect(*stream_, touches_);
  if (tracing()) open_operation(*stream_);
}

Refusal* Submission::begin_captured(const HostTask& task, Capture* capture) {
  if (stream_->capture()) return order(task, shadows_of(*stream_->capture(), touches_));
  if (capture->active() && capture->exclusive()) {
    capture->refuse(
        "work for a stream that takes no part would run in the first call alone; let it wait for the current one");
  }
  return order(task, touches_);
}

void Submission::commit_captured(Point point, Site site) {
  const std::vector<Touch>& shadows = shadows_of(*stream_->capture(), touches_);
  stream_->capture()->note(*stream_, touches_, point);
  Ordering::note(*stream_, point, shadows, mode_, site, snapshot_);
}

Past Submission::past() {
  Past past = past_of(*stream_);
  snapshot_ = stream_->lane().snapshot();
  return past;
}

void Submission::commit_call(Point point, Site site, const Moment& when) {
  note_operation(*stream_, snapshot_);
  if (touches_.empty()) return;
  const bool tracked = static_cast<bool>(when.lane);
  Ordering::note(*stream_, point, touches_, tracked ? mode_ : HazardMode::off, site, tracked ? &when : nullptr);
}

}  // namespace anabranch
