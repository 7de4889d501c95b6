// The memory of a capture: blocks that its nodes use, and blocks that it allocates.
#include <algorithm>
#include <utility>

#include "anabranch/graph/capture.hpp"
#include "capture_backend.hpp"

namespace anabranch {
namespace {

// The offset of a storage in its shadow, which may be a larger block around it.
std::ptrdiff_t distance(const Storage& storage, const Storage& shadow) noexcept {
  return storage.pointer() - shadow.pointer();
}

}  // namespace

// Requires the lock.
Capture::Operand& Capture::operand(Storage& storage) {
  Recent& recent = recent_[reinterpret_cast<std::uintptr_t>(&storage) / sizeof(Storage) % recent_.size()];
  if (recent.storage != &storage) recent = {&storage, &find_operand(storage)};
  return *recent.operand;
}

Capture::Operand& Capture::find_operand(Storage& storage) {
  Operand& operand = operands_[{&storage.backend().device(), storage.pointer(), storage.bytes()}];
  if (!operand.shadow) {
    operand.shadow = Storage::adopt(backend_of(storage.backend().device()), storage.pointer(), storage.bytes(), false,
                                    this, nullptr);
    if (operand.shadow->site.code == 0) operand.shadow->site = storage.site;
    if (storage.backend().capture() == this) {
      for (std::uint32_t i = 0; i < own_.size(); ++i) {
        if (own_[i].used && own_[i].pointer == storage.pointer()) operand.own = i;
      }
    }
  }
  // An outer capture's own memory stays in use there until the body is in the graph.
  if (storage.backend().capture() != this &&
      std::none_of(operand.kept.begin(), operand.kept.end(),
                   [&storage](const Ref<Storage>& kept) { return kept.get() == &storage; })) {
    operand.kept.push_back(Ref<Storage>::share(&storage));
  }
  return operand;
}

void Capture::shadow(std::span<const Touch> touches, std::vector<Touch>& shadows) {
  shadows.assign(touches.begin(), touches.end());
  const std::lock_guard lock(mutex_);
  check();
  for (Touch& touch : shadows) {
    Storage& shadow = *operand(*touch.storage).shadow;
    const std::ptrdiff_t further = distance(*touch.storage, shadow);
    touch.storage = &shadow;
    touch.low += further;
    touch.high += further;
    touch.first += further;
  }
}

bool Capture::writes(Storage& storage) const {
  // Work before a body is captured, too.
  if (outer_ && outer_->writes(storage)) return true;
  const std::lock_guard lock(mutex_);
  if (!active()) return false;
  if (exclusive()) return true;
  if (storage.backend().capture()) return true;
  // By any handle.
  return std::any_of(operands_.begin(), operands_.end(), [&storage](const auto& one) {
    const auto& [device, pointer, bytes] = one.first;
    return one.second.written && pointer < storage.pointer() + storage.bytes() && storage.pointer() < pointer + bytes;
  });
}

void Capture::note(const Stream& stream, std::span<const Touch> touches, Point point) {
  const std::lock_guard lock(mutex_);
  if (!active()) return;
  const std::uint32_t node = static_cast<const CaptureStream&>(stream).node_at(point);
  if (node == none) return;
  for (const Touch& touch : touches) {
    Operand& used = operand(*touch.storage);
    if (anabranch::writes(touch.access)) used.written = true;
    accesses_.push_back({node, used.own, touch.storage, touch.footprint(), touch.access});
    if (used.own == none) continue;
    std::vector<std::uint32_t>& users = own_[used.own].users;
    std::erase_if(users, [&](std::uint32_t user) { return user == node || moments_[node].follows(moments_[user]); });
    users.push_back(node);
  }
}

// Reuses freed memory of the capture if all its users come before. The size must match, so that the last owner frees
// the whole block.
Allocation Capture::allocate(CaptureStream& stream, std::size_t bytes, MemoryKind kind) {
  Backend& real = stream.backend().device();
  {
    const std::lock_guard lock(mutex_);
    check();
    if (outer_) {
      throw Error(ErrorKind::capture,
                  "the body of a branch or loop cannot allocate: it is a graph that runs any number of times; allocate "
                  "before the branch or loop, and let the body write to that");
    }
    for (std::uint32_t i = 0; i < own_.size(); ++i) {
      Own& own = own_[i];
      if (own.used || own.device != &real || own.bytes != bytes || own.kind != kind) continue;
      if (!own.uses.empty()) continue;  // replays come after those uses, but work captured now does not
      const Past past = stream.lane().past();
      const auto before = [&](std::uint32_t user) { return past.covers(moments_[user]); };
      if (!std::all_of(own.users.begin(), own.users.end(), before)) continue;
      // The release becomes a predecessor, but no part of the stream's clock: nothing else is ever ordered with it, and
      // each one is a lane of its own, so the clock would grow with every temporary array.
      std::vector<std::uint32_t> tips = stream.tips();
      tips.push_back(own.node);
      stream.stop_at(std::move(tips));
      stream.issued_.fetch_add(1);
      push(stream, NodeKind::alloc, {}, bytes, std::monostate{});
      own.used = true;
      own.node = stream.newest();
      own.users = {own.node};
      retain();
      return {own.pointer, 0};
    }
  }
  const Allocation made = real.allocate(nullptr, bytes, kind);
  const std::lock_guard lock(mutex_);
  try {
    push(stream, NodeKind::alloc, {}, bytes, std::monostate{});
  } catch (...) {
    std::vector<Use> none_yet;
    real.free(made.pointer, bytes, kind, none_yet);
    throw;
  }
  const std::uint32_t node = stream.newest();
  own_.push_back({&real, made.pointer, bytes, kind, true, node, {node}, nullptr});
  retain();  // the allocation's reference, which `free` drops
  return {made.pointer, 0};
}

// The last array of the memory has been released. The capture adds a free node, in no stream, after all users.
// Afterwards the graph owns the memory, including its uses outside the capture.
void Capture::free(std::byte* pointer, std::vector<Use>& uses) noexcept {
  Operand over;  // released outside the lock
  const std::lock_guard lock(mutex_);
  const auto own =
      std::find_if(own_.begin(), own_.end(), [pointer](const Own& one) { return one.used && one.pointer == pointer; });
  if (own == own_.end()) return;
  own->used = false;
  own->storage = nullptr;
  own->uses.swap(uses);
  const auto known = operands_.find({own->device, pointer, own->bytes});
  if (known != operands_.end()) {
    over = std::move(known->second);
    operands_.erase(known);
    recent_ = {};
  }
  if (!active()) return;
  Lane lane;
  for (const std::uint32_t user : own->users) lane.follow(moments_[user]);
  own->node = add_node(NodeKind::free, {}, *own->device, own->bytes, own->users, lane.advance(), {});
}

// Makes later users come after the allocation, as outside a capture, and so after all earlier users of the memory.
void Capture::own(Storage& storage, Stream& stream) {
  if (!storage.pointer()) {
    // An allocation of zero bytes has no owner.
    storage.backend_ = &storage.backend().device();
    return;
  }
  const std::lock_guard lock(mutex_);
  if (!active()) throw error();  // another thread has ended it
  for (Own& own : own_) {
    if (!own.used || own.pointer != storage.pointer()) continue;
    own.storage = &storage;
    Storage& shadow = *operand(storage).shadow;
    shadow.accesses().note_arrival(stream, stream.issued(), moments_[own.node],
                                   Footprint(0, own.bytes).moved(distance(storage, shadow)));
  }
}

bool Capture::involves(const Backend& device) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(backends_.begin(), backends_.end(), [&](const auto& one) { return &one->device() == &device; });
}

// Requires the lock. Hands the memory of living arrays over to them, as if they had allocated it outside the capture.
std::vector<Ref<Storage>> Capture::hand_over_living() {
  std::vector<Ref<Storage>> living;
  for (Own& own : own_) {
    if (!own.used) continue;
    if (!own.storage || !own.storage->try_retain()) {
      own.used = false;  // its last array is being released
      continue;
    }
    own.storage->backend_ = own.device;
    living.push_back(Ref<Storage>::take(own.storage));
    release();  // the allocation's reference; the caller has another
  }
  return living;
}

void Capture::release_blocks() noexcept {
  std::vector<Own> own;
  {
    const std::lock_guard lock(mutex_);
    own.swap(own_);
  }
  for (Own& one : own) {
    if (!one.used) one.device->free(one.pointer, one.bytes, one.kind, one.uses);
  }
}

}  // namespace anabranch
