#include "controller.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "anabranch/backend.hpp"
#include "anabranch/runtime.hpp"
#include "dpor.hpp"
#include "random.hpp"

namespace anabranch::explore {
namespace {

std::atomic<Controller*> controlling{nullptr};
std::atomic<std::uint64_t> generations{0};

// How often the same question in a row is a choice. After that it is a wait, or a loop of them would have no end.
constexpr int most_repeats = 3;

// Steps between two looks at the clock.
constexpr int steps_per_look = 64;

enum Kind : int { main_host, function_host, thread_host, stream_of_host, stream_before, block_of_host };

// The same for launches that need to be verified once.
std::size_t hash_of(const std::string& what, std::span<const Declared> declared) {
  std::size_t hash = std::hash<std::string>()(what);
  const auto add = [&hash](std::size_t value) { hash = (hash ^ value) * 0x100000001B3; };
  for (const Declared& one : declared) {
    add(static_cast<std::size_t>(one.access()));
    add(one.bytes());
    // Whether two parameters share memory.
    add(static_cast<std::size_t>(one.first() - declared.front().first() < 0 ||
                                 one.first() >= declared.front().first() + declared.front().bytes()));
  }
  return hash;
}

std::uint64_t key(EventId event) noexcept { return std::uint64_t{event.process} << 32 | event.index; }

}  // namespace

Controller* Controller::current() noexcept { return controlling.load(std::memory_order_acquire); }

Controller::~Controller() {
  if (current() == this) end(false);
}

// Waits for what was enqueued before, whether it fails or not.
void Controller::settle() {
  for (Backend* backend : devices()) {
    if (!backend->controlled()) continue;
    for (const Ref<Stream>& stream : backend->streams()) {
      try {
        while (!backend->synchronize(*stream, stream->issued(), std::chrono::seconds(1))) {
        }
      } catch (const AsyncError&) {
        continue;
      }
    }
  }
  settled_ = true;
}

void Controller::begin() {
  if (!settled_) settle();
  Controller* none = nullptr;
  if (!controlling.compare_exchange_strong(none, this))
    throw Error(ErrorKind::value, "one exploration at a time; another has a run on");
  run_.clear();
  schedule_.clear();
  happened_.clear();
  sources_.clear();
  streams_.clear();
  hosts_.clear();
  stuck_.clear();
  completions_.clear();
  gates_.clear();
  ready_.clear();
  opened_.clear();
  sequence_ = 0;
  generation_ = generations.fetch_add(1) + 1;
  advancing_ = giving_up_ = false;
  diverged_.clear();
  failure_.reset();
  failed_at_.clear();
  violation_.clear();
  auto host = std::make_unique<Host>();
  host->process = number(main_host, 0, 0);
  host->thread = thread_serial();
  host->name = "host";
  hosts_.push_back(std::move(host));
  running_ = 1;
  chooser_->begin();
  for (Backend* backend : devices()) backend->control(this);
  traces_on.fetch_add(exploration);
}

Outcome Controller::end(bool details) {
  traces_on.fetch_sub(exploration);
  for (Backend* backend : devices()) backend->control(nullptr);
  controlling.store(nullptr, std::memory_order_release);
  Outcome outcome;
  outcome.schedule = schedule_.text();
  outcome.diverged = diverged_;
  outcome.failure = failure_;
  outcome.failed_at = failed_at_;
  outcome.violation = violation_;
  outcome.violated_at = violated_at_;
  outcome.deadlock = std::move(stuck_);
  if (details) {
    for (const Reversible& pair : run_.reversible()) happened_[pair.second].reversible.push_back(pair.first);
    outcome.events = std::move(happened_);
  }
  outcome.fresh = chooser_->end(run_);
  return outcome;
}

// -- names that are the same in every run --

Process Controller::number(int kind, std::uint64_t one, std::uint64_t two) {
  return numbers_.try_emplace({kind, one, two}, static_cast<Process>(numbers_.size())).first->second;
}

Controller::Host& Controller::this_host() {
  const void* stream = host_function_stream();
  const std::uint64_t thread = thread_serial();
  for (const auto& host : hosts_) {
    if (stream ? host->function && (!host->stream || host->stream == stream) : host->thread == thread) return *host;
  }
  // A thread that the program has started. Nobody knows when it runs.
  auto host = std::make_unique<Host>();
  host->process = number(thread_host, hosts_.size(), 0);
  host->thread = thread;
  host->counted = false;
  host->name = "thread " + std::to_string(hosts_.size());
  hosts_.push_back(std::move(host));
  return *hosts_.back();
}

void Controller::opened(Stream& stream, Runnable& runnable) {
  const std::lock_guard lock(mutex_);
  Host& host = this_host();
  sources_.erase(&runnable);
  streams_.erase(&stream);
  std::erase_if(opened_, [&](const auto& one) { return one.first == &runnable; });
  opened_.emplace_back(&runnable, number(stream_of_host, host.process, ++host.streams));
}

Controller::Source& Controller::source_of(Stream& stream, Runnable& runnable) {
  const auto [place, fresh] = sources_.try_emplace(&runnable);
  Source& source = place->second;
  if (!fresh) return source;
  streams_[&stream] = &runnable;
  const auto opened =
      std::find_if(opened_.begin(), opened_.end(), [&](const auto& one) { return one.first == &runnable; });
  if (opened != opened_.end()) {
    source.process = opened->second;
    opened_.erase(opened);
  } else {
    const auto known = outside_.try_emplace(&runnable, 0);
    if (known.second) known.first->second = number(stream_before, outside_.size(), 0);
    source.process = known.first->second;
  }
  source.name = stream.name();
  if (source.name.empty()) source.name = "stream " + std::to_string(source.process);
  const Capabilities& device = stream.backend().capabilities();
  if (device.index != 0) source.name += " on " + device.kind + ":" + std::to_string(device.index);
  return source;
}

std::uint32_t Controller::block_of(Storage& storage, Host& host) {
  if (storage.explored >> 32 != generation_)
    storage.explored = generation_ << 32 | number(block_of_host, host.process, ++host.blocks);
  return static_cast<std::uint32_t>(storage.explored);
}

void Controller::add_use(std::vector<MemoryUse>& uses, const Touch& touch, Host& host) {
  Storage* storage = touch.storage;
  while (storage->original()) storage = storage->original().get();
  const Footprint where = touch.footprint();
  uses.push_back({block_of(*storage, host), touch.access, where});
  for (const Ref<Storage>& other : storage->neighbours())
    uses.push_back({block_of(*other, host), touch.access, where.moved(storage->pointer() - other->pointer())});
}

// -- what is enqueued --

Controller::Coming& Controller::coming() noexcept {
  thread_local Coming coming;
  return coming;
}

void Controller::expect(Stream& stream, std::span<const Touch> touches) {
  if (stream.capture()) return;
  if (!stream.backend().controlled()) {
    const Capabilities& device = stream.backend().capabilities();
    throw Error(ErrorKind::device, "schedules are explored on CPU devices alone; this work is for " + device.kind + ":" +
                                       std::to_string(device.index));
  }
  Coming& next = coming();
  next.stream = &stream;
  next.uses.clear();
  next.declared.clear();
  const auto find = calling_site.load(std::memory_order_relaxed);
  next.site = find ? find() : Site{};
  const std::lock_guard lock(mutex_);
  Host& host = this_host();
  for (const Touch& touch : touches) {
    add_use(next.uses, touch, host);
    next.declared.emplace_back(touch);
  }
}

void Controller::enqueued(Stream& stream, Runnable& runnable, Point point, Description description) {
  Coming& next = coming();
  const bool expected = next.stream == &stream;
  Site site = next.site;
  if (!expected) {
    const auto find = calling_site.load(std::memory_order_relaxed);
    site = find && description.explicit_site ? find() : Site{};
  }
  const std::lock_guard lock(mutex_);
  Host& host = this_host();
  host.repeats = 0;
  Source& source = source_of(stream, runnable);
  if (source.enqueued == 0) source.base = point - 1;
  Operation operation;
  operation.step = std::make_shared<Step>();
  operation.step->id = {source.process, ++source.enqueued};
  if (expected) {
    if (description.kernel && verified_.insert(hash_of(description.what, next.declared)).second)
      operation.declared = std::move(next.declared);
    operation.step->uses = std::move(next.uses);
  }
  next.stream = nullptr;
  for (const auto& [target, until] : description.waits) {
    if (const EventId event = event_at(*target, until); event.index != 0) operation.waits.push_back(event);
  }
  operation.created = host.past;
  operation.gate = description.gate;
  operation.sequence = ++sequence_;
  operation.what = std::move(description.what);
  operation.site = site;
  source.queue.push_back(std::move(operation));
}

void Controller::name(Stream& stream, std::vector<std::string> names) {
  const std::lock_guard lock(mutex_);
  const auto runnable = streams_.find(&stream);
  if (runnable == streams_.end()) return;
  std::deque<Operation>& queue = sources_[runnable->second].queue;
  if (!queue.empty()) queue.back().names = std::move(names);
}

// No event: it was over before the run.
EventId Controller::event_at(const Stream& stream, Point point) {
  const auto runnable = streams_.find(&stream);
  if (runnable == streams_.end()) return {};
  const Source& source = sources_[runnable->second];
  if (point <= source.base) return {};
  return {source.process, static_cast<std::uint32_t>(point - source.base)};
}

void Controller::ready(Runnable& runnable) noexcept {
  const std::lock_guard lock(mutex_);
  end_function(runnable);
  if (runnable.part()) return inner_.push_back(&runnable);
  if (std::find(ready_.begin(), ready_.end(), &runnable) == ready_.end()) ready_.push_back(&runnable);
}

// -- host functions --

void Controller::calling(Runnable& runnable, const Stream* stream) noexcept {
  const std::lock_guard lock(mutex_);
  auto host = std::make_unique<Host>();
  host->function = &runnable;
  host->stream = stream;
  host->name = "function";
  if (const auto source = sources_.find(&runnable); source != sources_.end()) {
    host->called = {source->second.process, source->second.enqueued - static_cast<std::uint32_t>(source->second.queue.size())};
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
  const Host& host = **found;
  if (host.called.index != 0 && run_.happened(host.called)) {
    Reach& reach = completions_[key(host.called)];
    reach = run_.reach(host.called);
    reach.learn(host.past);
    if (const auto source = sources_.find(&runnable); source != sources_.end()) source->second.past.learn(host.past);
  }
  hosts_.erase(found);
  --running_;
  changed_.notify_all();
}

// -- waits of the host --

void Controller::learn(Reach& reach, EventId event) {
  if (event.index == 0 || !run_.happened(event)) return;
  const auto later = completions_.find(key(event));
  reach.learn(later != completions_.end() ? later->second : run_.reach(event));
}

bool Controller::may_go_on(const Host& host) {
  if (host.asking) return giving_up_;
  if (host.awaited) return host.awaited->has_reached(host.point);
  return ready_.empty() && inner_.empty() &&
         std::none_of(hosts_.begin(), hosts_.end(), [](const auto& other) { return other->function; });
}

void Controller::block(Host& host) {
  host.blocked = true;
  host.go = false;
  if (host.counted) --running_;
  changed_.notify_all();
}

void Controller::release(Host& host) {
  if (host.counted && !host.go) ++running_;
  host.blocked = host.go = false;
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

// Returns whether the host may go on; if not, the time is over, or it is stuck.
bool Controller::wait(std::unique_lock<std::mutex>& lock, Host& host, std::chrono::nanoseconds timeout) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::min<std::chrono::nanoseconds>(timeout, std::chrono::hours(1));
  const bool draining = !host.awaited && !host.asking;
  block(host);
  for (int left = steps_per_look; !host.go; --left) {
    if (left == 0) {
      if (std::chrono::steady_clock::now() >= deadline) break;
      left = steps_per_look;
    }
    if (running_ > 0 || advancing_) {
      if (changed_.wait_until(lock, deadline) == std::cv_status::timeout) break;
      continue;
    }
    if (wake_one() || advance(lock)) continue;
    if (!giving_up_) {
      find_deadlock();
      giving_up_ = true;
      changed_.notify_all();
    }
    if (!draining) break;
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
    throw Error(ErrorKind::value, "nothing that this waits for can happen: the streams and the host wait for each other");
  }
  return reached;
}

bool Controller::drain(std::chrono::nanoseconds timeout, bool give_up) {
  std::unique_lock lock(mutex_);
  giving_up_ = giving_up_ || give_up;
  return wait(lock, this_host(), timeout);
}

void Controller::ask(Stream& stream, Point point) {
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
  host.asking = std::make_shared<Step>();
  host.asking->id = {host.process, ++host.queries};
  host.asking->asked = event;
  wait(lock, host, std::chrono::hours(1));
}

void Controller::opened(const Pending& gate) {
  const std::lock_guard lock(mutex_);
  gates_.try_emplace(&gate, this_host().past);
}

// -- one step --

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
    if (host->blocked && host->asking) candidates_.push_back({nullptr, nullptr, host.get(), 0});
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
    run_.add(host.asking, host.past);
    host.past = run_.reach(id);
    happened_.push_back({host.process, id.index, host.name, "query"});
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
  advancing_ = true;
  if (!operation.declared.empty() && !runnable.failed()) verify(lock, operation, runnable);
  step(lock, runnable);
  run_parts(lock);
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
  const auto why = make_ref<Failure>("the run was given up");
  return std::any_of(ready_.begin(), ready_.end(), [&](Runnable* runnable) { return runnable->give_up(why); });
}

void opened(const Pending& gate) {
  if (Controller* controller = Controller::current()) controller->opened(gate);
}

void name_parameters(Stream& stream, std::vector<std::string> names) {
  if (Controller* controller = Controller::current()) controller->name(stream, std::move(names));
}

double Controller::bound() const noexcept {
  const auto* random = dynamic_cast<const Random*>(chooser_.get());
  return random ? random->bound() : 1;
}

std::unique_ptr<Exploration> Exploration::of_classes() {
  return std::make_unique<Controller>(std::make_unique<Dpor>());
}

std::unique_ptr<Exploration> Exploration::at_random(std::uint64_t runs, std::uint64_t seed) {
  return std::make_unique<Controller>(std::make_unique<Random>(runs, seed));
}

std::unique_ptr<Exploration> Exploration::of_schedule(const std::string& schedule) {
  return std::make_unique<Controller>(std::make_unique<Replay>(Schedule::parse(schedule)));
}

void ask(Stream& stream, Point point) {
  if (Controller* controller = Controller::current()) controller->ask(stream, point);
}

}  // namespace anabranch::explore
