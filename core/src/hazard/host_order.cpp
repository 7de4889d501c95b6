#include "anabranch/hazard/host_order.hpp"

#include <algorithm>

#include "anabranch/hazard/external_use.hpp"
#include "anabranch/stream/host.hpp"

namespace anabranch {

std::vector<Use> uses_of(const Touch& touch) {
  // Include what borrowers may have enqueued so far.
  ExternalUse::note(*touch.storage, nullptr);
  return touch.storage->uses(touch.access, touch.footprint());
}

std::vector<Use> uses_before(const HostTask& task, const Touch& touch) {
  std::vector<Use> found = uses_of(touch);
  std::erase_if(found, [&task](const Use& use) { return task.ignores(use); });
  return found;
}

bool is_own_wait(const HostTask& task, const Use& use) {
  if (!enqueued_by_function(use)) return false;
  return use.stream.get() == host_function_stream() || task.precedes(use);
}

bool is_own_wait(const HostTask& task, const Past& past) {
  return host_function_stream() && task.call.lane && past.clock.covers(task.call.lane->value, task.call.count);
}

std::vector<Use> host_conflicts(const HostTask& task, const Touch& touch) {
  std::vector<Use> found = touch.storage->conflicts(task.lane.past(), nullptr, touch.access, touch.footprint());
  std::erase_if(found, [&task](const Use& use) {
    return use.unreported || !use.when.lane || task.ignores(use) || task.has_open(use);
  });
  return found;
}

std::vector<Use> open_conflicts(const HostTask& task, const Touch& touch) {
  if (!touch.storage->accesses().several()) return {};
  std::vector<Use> found = touch.storage->conflicts(task.lane.past(), nullptr, touch.access, touch.footprint());
  // The host waits for the functions that have declared what they do.
  const std::vector<Use> all = found;
  std::erase_if(found, [&](const Use& use) {
    return !use.open || std::any_of(all.begin(), all.end(),
                                    [&](const Use& other) { return !task.ignores(other) && use.ends_before(other); });
  });
  return found;
}

std::vector<Use> return_conflicts(const HostTask& task, const Touch& touch) {
  std::vector<Use> found = host_conflicts(task, touch);
  std::erase_if(found, [&touch](const Use& use) { return touch.storage->kept_by_neighbours(use.where.bytes()); });
  return found;
}

void note_host(HostTask& task, const Touch& touch, Site site) {
  touch.storage->accesses().note_host(task.lane.advance(), touch.access, touch.footprint(), site, task.call);
}

}  // namespace anabranch
