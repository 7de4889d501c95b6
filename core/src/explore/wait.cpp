#include <algorithm>
#include <utility>

#include "anabranch/backend.hpp"
#include "anabranch/runtime.hpp"
#include "controller.hpp"

namespace anabranch::explore {
namespace {

// How many times in a row a query has a choice of answers. Then it waits: a polling loop would otherwise never end.
constexpr int most_repeats = 3;

// Steps between two readings of the clock.
constexpr int steps_per_look = 64;

// How long a thread of the program waits for the main thread, before it takes that to wait outside the library: in
// `Thread.join`, say.
constexpr std::chrono::milliseconds patience(50);

}  // namespace

// -- host functions --

void Controller::calling(Runnable& runnable) noexcept {
  const std::lock_guard lock(mutex_);
  auto host = std::make_unique<Host>();
  host->function = &runnable;
  host->origin = origin_;
  host->name = "function";
  if (const auto source = sources_.find(&runnable); source != sources_.end()) {
    host->called = {source->second.process,
                    source->second.enqueued - static_cast<std::uint32_t>(source->second.queue.size())};
    host->past = source->second.past;
    host->name = "function of " + source->second.name;
  }
  host->process = number(function_host, host->called.process, host->called.index);
  hosts_.push_back(std::move(host));
  ++running_;
}

void Controller::end_function(Runnable& runnable) {
  const auto found =
      std::find_if(hosts_.begin(), hosts_.end(), [&](const auto& host) { return host->function == &runnable; });
  if (found == hosts_.end()) return;
  Host& host = **found;
  if (host.called.index != 0 && run_.happened(host.called)) {
    Reach& reach = completions_[host.called.key()];
    reach = run_.reach(host.called);
    reach.learn(host.past);
    if (const auto source = sources_.find(&runnable); source != sources_.end()) source->second.past.learn(host.past);
  }
  host.function = nullptr;
  if (host.lingers) return;
  hosts_.erase(found);
  --running_;
  changed_.notify_all();
}

void Controller::linger() {
  const std::lock_guard lock(mutex_);
  this_host().lingers = true;
}

void Controller::leave() {
  const std::lock_guard lock(mutex_);
  const std::uint64_t thread = thread_serial();
  const auto found = std::find_if(hosts_.begin(), hosts_.end(),
                                  [&](const auto& host) { return host->lingers && host->thread == thread; });
  if (found == hosts_.end()) return;
  hosts_.erase(found);
  --running_;
  changed_.notify_all();
}

// Whether it is a function that has begun and has not ended.
bool Controller::in_progress(EventId event) const {
  return std::any_of(hosts_.begin(), hosts_.end(),
                     [&](const auto& host) { return host->function && host->called == event; });
}

// -- waits of the host --

void Controller::learn(Reach& reach, EventId event) {
  if (event.index == 0 || !run_.happened(event)) return;
  const auto later = completions_.find(event.key());
  reach.learn(later != completions_.end() ? later->second : run_.reach(event));
}

bool Controller::may_go_on(const Host& host) {
  if (host.asking) return giving_up_;
  if (host.awaited) return host.awaited->has_reached(host.point);
  return ready_.empty() && inner_.empty() && std::none_of(hosts_.begin(), hosts_.end(), [&](const auto& other) {
           return other.get() != &host && (other->function || other->lingers);
         });
}

void Controller::block(Host& host) {
  host.blocked = true;
  host.go = false;
  if (host.counted) --running_;
  changed_.notify_all();
}

void Controller::release(Host& host) {
  if (host.counted && !host.go) ++running_;
  host.blocked = host.go = host.drains = false;
  host.awaited = nullptr;
  host.asking.reset();
}

bool Controller::wake_one() {
  for (const auto& host : hosts_) {
    if (!host->blocked || host->go || !may_go_on(*host)) continue;
    host->go = true;
    if (host->counted) ++running_;
    changed_.notify_all();
    return true;
  }
  return false;
}

bool Controller::is_left_alone(Host& host) {
  const Host& main = *hosts_.front();
  if (host.counted || advancing_ || running_ != 1 || main.blocked) return false;
  const auto now = std::chrono::steady_clock::now();
  if (host.seen != sequence_ + 1) {
    host.seen = sequence_ + 1;
    host.alone_from = now + patience;
  }
  return now >= host.alone_from;
}

bool Controller::advance_alone(std::unique_lock<std::mutex>& lock) {
  uncontrolled_ = true;
  const int away = std::exchange(running_, 0);
  const bool advanced = wake_one() || advance(lock);
  running_ += away;
  return advanced;
}

// Returns true if the host may continue, false on a timeout or a deadlock.
bool Controller::wait(std::unique_lock<std::mutex>& lock, Host& host, std::chrono::nanoseconds timeout) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::min<std::chrono::nanoseconds>(timeout, std::chrono::hours(1));
  block(host);
  for (int left = steps_per_look; !host.go; --left) {
    if (left == 0) {
      if (std::chrono::steady_clock::now() >= deadline) break;
      left = steps_per_look;
    }
    if (running_ > 0 || advancing_) {
      if (is_left_alone(host) && advance_alone(lock)) continue;
      const auto now = std::chrono::steady_clock::now();
      if (now >= deadline) break;
      changed_.wait_until(lock, host.counted ? deadline : std::min(deadline, now + patience));
      continue;
    }
    if (wake_one() || advance(lock)) continue;
    if (!giving_up_) {
      find_deadlock();
      giving_up_ = true;
      changed_.notify_all();
    }
    if (!host.drains) break;
    if (!give_up_one() && changed_.wait_until(lock, deadline) == std::cv_status::timeout) break;
  }
  const bool go = host.go;
  release(host);
  return go;
}

bool Controller::synchronize(Stream& stream, Runnable& runnable, Point point, std::chrono::nanoseconds timeout) {
  std::unique_lock lock(mutex_);
  Host& host = this_host();
  host.repeats = 0;
  bool reached = runnable.has_reached(point);
  if (!reached) {
    host.awaited = &runnable;
    host.point = point;
    reached = wait(lock, host, timeout);
  }
  if (reached) {
    learn(host.past, event_at(stream, point));
  } else if (giving_up_) {
    lock.unlock();
    const auto find = calling_site.load(std::memory_order_relaxed);
    const Site site = find ? find() : Site{};
    lock.lock();
    if (!stuck_.empty()) {
      for (Stuck& one : stuck_) {
        if (one.what.empty() && one.lane == host.name) one.site = site;
      }
    }
    throw Error(ErrorKind::value, "deadlock: the streams and the host wait for each other");
  }
  return reached;
}

bool Controller::drain(std::chrono::nanoseconds timeout, bool give_up) {
  std::unique_lock lock(mutex_);
  giving_up_ = giving_up_ || give_up;
  Host& host = this_host();
  host.drains = true;
  return wait(lock, host, timeout);
}

void Controller::run_all() {
  std::unique_lock lock(mutex_);
  uncontrolled_ = true;  // the host may go on before everything is over
  Host& host = this_host();
  host.repeats = 0;
  if (!wait(lock, host, std::chrono::hours(1)))
    throw Error(ErrorKind::value, "deadlock: the streams and the host wait for each other");
}

void Controller::ask(Stream& stream, Point point, const char* what) {
  std::unique_lock lock(mutex_);
  const EventId event = event_at(stream, point);
  Host& host = this_host();
  if (event.index == 0 || host.past.covers(event) || !host.counted || giving_up_) return;
  host.repeats = host.asked == event ? host.repeats + 1 : 1;
  host.asked = event;
  if (host.repeats > most_repeats) {
    Runnable& runnable = *streams_[&stream];
    host.awaited = &runnable;
    host.point = point;
    while (!runnable.has_reached(point) && !giving_up_) {
      if (wait(lock, host, std::chrono::hours(1))) break;
    }
    learn(host.past, event);
    return;
  }
  host.asked_as = what;
  host.asking = std::make_shared<Step>();
  host.asking->id = {host.process, ++host.queries};
  host.asking->asked = event;
  wait(lock, host, std::chrono::hours(1));
}

void Controller::note_uncontrolled() {
  const std::lock_guard lock(mutex_);
  uncontrolled_ = true;
}

void Controller::opened(const HostOperation& gate) {
  const std::lock_guard lock(mutex_);
  gates_.try_emplace(&gate, this_host().past);
}

// -- deadlocks --

void Controller::find_deadlock() {
  for (const auto& host : hosts_) {
    if (!host->blocked) continue;
    std::string target = "everything to be over";
    if (host->awaited) {
      const auto source = sources_.find(host->awaited);
      target = source != sources_.end() ? source->second.name : "a stream";
    }
    stuck_.push_back({host->name, "", target, {}});
  }
  for (Runnable* runnable : ready_) {
    const Source& source = sources_[runnable];
    if (source.queue.empty()) continue;
    const Operation& next = source.queue.front();
    stuck_.push_back({source.name, next.what, runnable->waits_for(), next.site});
  }
}

bool Controller::give_up_one() {
  return std::any_of(ready_.begin(), ready_.end(), [](Runnable* runnable) { return runnable->give_up(); });
}

}  // namespace anabranch::explore
