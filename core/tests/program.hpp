// A device that runs nothing, and programs for it.
#pragma once

#include <vector>

#include "anabranch/backend.hpp"
#include "anabranch/hazard/hazard.hpp"
#include "check.hpp"
#include "null/backend.hpp"

namespace anabranch {

inline null::NullBackend& null_device() {
  static auto* const made = new null::NullBackend(0, std::size_t{1} << 40);
  return *made;
}

inline Backend& device() { return null_device(); }

inline Ref<Storage> block(std::size_t bytes = 64) {
  return Storage::allocate(device(), nullptr, bytes, MemoryKind::device);
}

inline Ref<Stream> blocking() { return check::stream(device(), "blocking", false); }

// A host task that puts operations into streams.
class Program {
 public:
  const Ref<HostTask> task = make_ref<HostTask>();

  // The races that an access would make; makes it.
  std::vector<Race> access(Stream& stream, const Ref<Storage>& storage, Access access, ByteRange bytes = {0, 64}) {
    const Touch touch{storage.get(), bytes.low, bytes.high, nullptr, 0, access, false};
    Ordering ordering(stream, task->lane);
    ordering.begin();
    const bool clear = ordering.clear({&touch, 1});
    std::vector<Race> missing = ordering.missing({&touch, 1});
    CHECK(!clear || missing.empty());
    ordering.add(missing, *task);
    for (const Race& race : ordering.missing({&touch, 1})) CHECK(!race.first.when.lane);
    const Lane::Version snapshot = stream.lane().snapshot();
    Ordering::note(stream, check::call(stream, [] {}), {&touch, 1}, HazardMode::automatic, {}, snapshot);
    return missing;
  }
};

// What most tests of programs begin with.
struct Setting {
  Program program;
  const Ref<Stream> a = check::stream(device());
  const Ref<Stream> b = check::stream(device());
  const Ref<Stream> c = check::stream(device());
  const Ref<Storage> x = block();
  const Ref<Storage> y = block();
};

}  // namespace anabranch
