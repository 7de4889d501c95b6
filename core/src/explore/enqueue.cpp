#include <algorithm>
#include <utility>

#include "anabranch/backend.hpp"
#include "anabranch/runtime.hpp"
#include "controller.hpp"

namespace anabranch::explore {
namespace {

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

}  // namespace

// -- names that are the same in every run --

Process Controller::number(int kind, std::uint64_t one, std::uint64_t two) {
  return numbers_.try_emplace({kind, one, two}, static_cast<Process>(numbers_.size())).first->second;
}

Controller::Host& Controller::this_host() {
  const bool in_function = host_function_stream();
  const std::uint64_t thread = thread_serial();
  for (const auto& host : hosts_) {
    if (host->thread == thread && in_function == (host->function != nullptr)) return *host;
  }
  // One function at a time has begun and called nothing.
  for (const auto& host : hosts_) {
    if (!in_function || !host->function || host->thread != 0) continue;
    host->thread = thread;
    return *host;
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
  // The exploring thread's default stream outlives the run in which it is first asked for.
  if (stream.role() == StreamRole::per_thread && &host == hosts_.front().get()) return;
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

void Controller::allocated(const std::byte* memory) {
  const std::lock_guard lock(mutex_);
  Host& host = this_host();
  blocks_[memory] = number(block_of_host, host.process, ++host.blocks);
}

std::uint32_t Controller::block_of(Storage& storage, Host& host) {
  if (storage.explored >> 32 != generation_) {
    const auto known = blocks_.find(storage.pointer());
    const std::uint32_t block =
        known != blocks_.end() ? known->second : number(block_of_host, host.process, ++host.blocks);
    storage.explored = generation_ << 32 | block;
  }
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
    throw Error(ErrorKind::device, "schedules are explored on CPU devices alone; this work is for " + device.kind +
                                       ":" + std::to_string(device.index));
  }
  Coming& next = coming();
  next.stream = &stream;
  next.uses.clear();
  next.declared.clear();
  next.nodes.clear();
  const auto find = calling_site.load(std::memory_order_relaxed);
  next.site = find ? find() : Site{};
  const std::lock_guard lock(mutex_);
  Host& host = this_host();
  for (const Touch& touch : touches) {
    add_use(next.uses, touch, host);
    next.declared.emplace_back(touch);
  }
  // A graph lists its accesses by their addresses, which are other ones in each run.
  std::sort(next.uses.begin(), next.uses.end(), [](const MemoryUse& one, const MemoryUse& two) {
    return std::tuple(one.block, one.where.bytes().low, one.access) <
           std::tuple(two.block, two.where.bytes().low, two.access);
  });
}

void Controller::enqueued(Stream& stream, Runnable& runnable, Point point, Description description) {
  Coming& next = coming();
  const bool expected = next.stream == &stream && !description.order;
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
    operation.nodes = std::move(next.nodes);
    if (operation.nodes.empty()) operation.step->uses = std::move(next.uses);
  }
  if (!description.order) next.stream = nullptr;
  for (const auto& [target, until] : description.waits) {
    if (const EventId event = event_at(*target, until); event.index != 0) operation.waits.push_back(event);
  }
  operation.created = host.past;
  operation.gate = description.gate;
  gates_.erase(operation.gate);  // what is known of an earlier gate at the same address
  operation.sequence = sequence_ += 1 + operation.nodes.size();
  const bool main = &host == hosts_.front().get();
  operation.origin = {host.process, operation.sequence, main ? operation.sequence : host.origin.main};
  operation.what = std::move(description.what);
  operation.site = site;
  note(host, operation);
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
  if (runnable.is_part()) {
    const Part part = runnable.part();
    const auto graph = part.stream ? graphs_.find(part.stream) : graphs_.end();
    if (graph != graphs_.end() && !graph->second.nodes[part.number].runnable)
      return ready_node(runnable, graph->second, part.number);
    return inner_.push_back(&runnable);
  }
  if (std::find(ready_.begin(), ready_.end(), &runnable) == ready_.end()) ready_.push_back(&runnable);
}

void expect(Stream& stream, std::span<const Touch> touches) {
  if (Controller* const controller = Controller::current()) controller->expect(stream, touches);
}

}  // namespace anabranch::explore
