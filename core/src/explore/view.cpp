// Accesses by the host that last, and what it enqueues meanwhile.
#include <algorithm>

#include "controller.hpp"

namespace anabranch::explore {

std::uint64_t Controller::begin_view(const Touch& touch) {
  const std::lock_guard lock(mutex_);
  Host& host = this_host();
  View view{++newest_view_, host.process, {}};
  add_use(view.step.uses, touch, host);
  views_.push_back(std::move(view));
  return newest_view_;
}

void Controller::end_view(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  std::erase_if(views_, [number](const View& view) { return view.number == number; });
}

void Controller::pass_views(Stream& stream) {
  Point point = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto runnable = streams_.find(&stream);
    if (views_.empty() || runnable == streams_.end()) return;
    const Source& source = sources_[runnable->second];
    if (source.queue.empty()) return;
    const Operation& newest = source.queue.back();
    const Process host = this_host().process;
    const auto conflicts = [&](const View& view) {
      return view.host == host && (view.step.conflicts(*newest.step) ||
                                   std::any_of(newest.nodes.begin(), newest.nodes.end(), [&](const Node& node) {
                                     return view.step.conflicts(Step{{}, {}, node.uses});
                                   }));
    };
    if (std::none_of(views_.begin(), views_.end(), conflicts)) return;
    point = source.base + source.enqueued;
  }
  ask(stream, point, "access by the host");
}

std::uint64_t begin_view(const Touch& touch) {
  Controller* const controller = Controller::current();
  return controller ? controller->begin_view(touch) : 0;
}

void end_view(std::uint64_t number) {
  if (Controller* const controller = Controller::current()) controller->end_view(number);
}

void pass_views(Stream& stream) {
  if (Controller* const controller = Controller::current()) controller->pass_views(stream);
}

}  // namespace anabranch::explore
