#include <algorithm>
#include <utility>

#include "controller.hpp"

namespace anabranch::explore {

// The steps that are possible now, in the order in which the program enqueued them, queries last.
void Controller::collect() {
  candidates_.clear();
  for (std::size_t i = 0; i < ready_.size();) {
    Runnable& runnable = *ready_[i];
    const Readiness readiness = runnable.readiness();
    if (readiness == Readiness::idle) {
      ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    ++i;
    if (readiness == Readiness::blocked) continue;
    Source& source = sources_[&runnable];
    if (!source.queue.empty()) candidates_.push_back({&source, &runnable, nullptr, source.queue.front().sequence});
  }
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& one, const Candidate& two) { return one.sequence < two.sequence; });
  for (const auto& host : hosts_) {
    if (host->blocked && host->asking && !in_progress(host->asking->asked))
      candidates_.push_back({nullptr, nullptr, host.get(), 0});
  }
}

std::size_t Controller::decide() {
  if (giving_up_ || !diverged_.empty()) return 0;
  steps_.clear();
  for (const Candidate& one : candidates_)
    steps_.push_back(one.source ? one.source->queue.front().step : one.host->asking);
  const std::optional<std::size_t> choice = chooser_->choose(steps_);
  if (!choice) {
    const Candidate& first = candidates_.front();
    diverged_ = first.source ? first.source->queue.front().what + " in " + first.source->name : "a query";
    return 0;
  }
  if (candidates_.size() > 1) schedule_.add(*choice);
  return *choice;
}

// Returns whether anything happened.
bool Controller::advance(std::unique_lock<std::mutex>& lock) {
  if (!inner_.empty()) {
    run_parts(lock);
    return true;
  }
  if (begin_graph(lock)) return true;
  const std::size_t before = ready_.size();
  collect();
  if (candidates_.empty()) return ready_.size() != before;
  const Candidate chosen = candidates_[decide()];
  if (chosen.host) {
    answer(*chosen.host);
  } else {
    run(lock, chosen);
  }
  return true;
}

void Controller::answer(Host& host) {
  if (!giving_up_) {
    const EventId id = host.asking->id;
    // Of a function, what it did before it was over.
    const auto inner = completions_.find(host.asking->asked.key());
    run_.add(host.asking, host.past, inner != completions_.end() ? inner->second : Reach());
    host.past = run_.reach(id);
    happened_.push_back({host.process, id.index, host.name, host.asked_as});
  }
  host.go = true;
  if (host.counted) ++running_;
  changed_.notify_all();
}

void Controller::step(std::unique_lock<std::mutex>& lock, Runnable& runnable) {
  lock.unlock();
  runnable.step();
  lock.lock();
}

void Controller::run_parts(std::unique_lock<std::mutex>& lock) {
  advancing_ = true;
  while (!inner_.empty() && running_ == 0) {
    Runnable& part = *inner_.front();
    inner_.pop_front();
    step(lock, part);
  }
  advancing_ = false;
}

void Controller::run(std::unique_lock<std::mutex>& lock, const Candidate& chosen) {
  Source& source = *chosen.source;
  Runnable& runnable = *chosen.runnable;
  std::erase(ready_, &runnable);
  Operation operation = std::move(source.queue.front());
  source.queue.pop_front();
  const EventId id = operation.step->id;
  if (!giving_up_) {
    Reach& before = source.past;
    before.learn(operation.created);
    for (const EventId other : operation.waits) learn(before, other);
    if (const auto gate = gates_.find(operation.gate); gate != gates_.end()) before.learn(gate->second);
    run_.add(std::move(operation.step), before);
    source.past = run_.reach(id);
    happened_.push_back({id.process, id.index, source.name, operation.what, operation.site});
  }
  origin_ = operation.origin;
  advancing_ = true;
  if (!operation.declared.empty() && !runnable.failed()) verify(lock, operation, runnable);
  step(lock, runnable);
  run_parts(lock);
  if (!graphs_.empty()) forget_graph(runnable);
  advancing_ = false;
  if (!failure_ && !giving_up_) {
    failure_ = runnable.failed();
    if (failure_) failed_at_ = operation.what + " in " + source.name;
  }
}

void Controller::verify(std::unique_lock<std::mutex>& lock, Operation& operation, Runnable& runnable) {
  lock.unlock();
  const std::optional<Violation> found = explore::verify(operation.declared, [&] { runnable.rehearse(); });
  lock.lock();
  if (!found || !violation_.empty()) return;
  const std::size_t number = found->parameter;
  const std::string name =
      number < operation.names.size() ? "'" + operation.names[number] + "'" : std::to_string(number + 1);
  violation_ = operation.what + (found->written ? " writes parameter " : " reads parameter ") + name +
               (found->written ? ", which is declared as read alone (In)"
                               : " before it has written it, which is declared as written alone (Out)");
  violated_at_ = operation.site;
}

}  // namespace anabranch::explore
