// What the threads of the host do in an order that no choice changes: a function runs while the others wait, so what it
// enqueues comes after what they have enqueued before, and in the program it need not.
#include <algorithm>

#include "anabranch/explore/host_access.hpp"
#include "controller.hpp"

namespace anabranch::explore {
namespace {

// Streams have the numbers of their processes; memory those of blocks, beyond all of these. Events have their
// addresses, from the other end.
constexpr std::uint64_t memory = std::uint64_t{1} << 32;

std::uint64_t object_of(const Event& event) { return ~std::uint64_t{reinterpret_cast<std::uintptr_t>(&event)}; }

}  // namespace

// Whether the program has the host come after what another one did.
bool Controller::comes_after(const Host& host, const HostAction& action) const {
  if (action.host == hosts_.front()->process) return action.sequence <= host.origin.main;
  if (action.host == host.origin.host && action.sequence <= host.origin.sequence) return true;
  return action.function.index != 0 && host.past.covers(action.function) && !in_progress(action.function);
}

void Controller::note(const Host& host, std::uint64_t object, bool written, std::uint64_t sequence) {
  if (!host.counted) return;
  std::vector<HostAction>& actions = host_actions_[object];
  for (const HostAction& action : actions) {
    if (action.host != host.process && (written || action.written) && !comes_after(host, action)) uncontrolled_ = true;
  }
  std::erase_if(actions,
                [&](const HostAction& action) { return action.host == host.process && action.written == written; });
  // A callback of the function comes after it, and before nothing.
  actions.push_back({host.process, host.function ? host.called : EventId{}, written, sequence});
}

void Controller::note(const Host& host, const std::vector<MemoryUse>& uses, std::uint64_t sequence) {
  for (const MemoryUse& use : uses) note(host, memory | use.block, writes(use.access), sequence);
}

void Controller::note(const Host& host, const Operation& operation) {
  note(host, operation.step->id.process, true, operation.sequence);
  for (const EventId other : operation.waits) note(host, other.process, false, operation.sequence);
  note(host, operation.step->uses, operation.sequence);
  for (const Node& node : operation.nodes) note(host, node.uses, operation.sequence);
}

void Controller::host_accesses(const Touch& touch) {
  const std::lock_guard lock(mutex_);
  Host& host = this_host();
  std::vector<MemoryUse> uses;
  add_use(uses, touch, host);
  note(host, uses, ++sequence_);
}

void Controller::host_records(const Event& event, const Stream& stream) {
  const std::lock_guard lock(mutex_);
  const Host& host = this_host();
  ++sequence_;
  note(host, object_of(event), true, sequence_);
  if (const auto runnable = streams_.find(&stream); runnable != streams_.end())
    note(host, sources_[runnable->second].process, false, sequence_);
}

void Controller::host_reads(const Event& event) {
  const std::lock_guard lock(mutex_);
  note(this_host(), object_of(event), false, ++sequence_);
}

void host_accesses(const Touch& touch) {
  if (Controller* const controller = Controller::current()) controller->host_accesses(touch);
}

void host_records(const Event& event, const Stream& stream) {
  if (Controller* const controller = Controller::current()) controller->host_records(event, stream);
}

void host_reads(const Event& event) {
  if (Controller* const controller = Controller::current()) controller->host_reads(event);
}

}  // namespace anabranch::explore
