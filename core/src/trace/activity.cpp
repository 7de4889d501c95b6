#include <atomic>
#include <charconv>
#include <mutex>

#include "anabranch/backend.hpp"
#include "anabranch/runtime.hpp"

namespace anabranch {
namespace {

std::atomic<bool> keeping{false};
std::mutex mutex;
// Never destroyed: streams may end on worker threads after every destructor has run.
std::vector<StreamActivity>& ended() {
  static auto* const activities = new std::vector<StreamActivity>;
  return *activities;
}

StreamActivity describe(const Stream& stream) {
  const Capabilities& device = stream.backend().capabilities();
  std::string name = stream.name();
  if (name.empty()) {
    char digits[2 * sizeof(std::uintptr_t)];
    const auto [end, error] = std::to_chars(digits, digits + sizeof digits, stream.handle(), 16);
    name = "0x" + std::string(digits, end);
  }
  return {device.kind + ":" + std::to_string(device.index), std::move(name), stream.activity()};
}

}  // namespace

void keep_activity(bool keep) noexcept { keeping = keep; }

void note_end(const Stream& stream) {
  if (!keeping || stream.activity().operations == 0) return;
  StreamActivity activity = describe(stream);
  std::lock_guard lock(mutex);
  ended().push_back(std::move(activity));
}

std::vector<StreamActivity> all_activity() {
  std::vector<StreamActivity> all;
  {
    std::lock_guard lock(mutex);
    all = ended();
  }
  for (Backend* device : devices()) {
    for (const Ref<Stream>& stream : device->streams()) {
      if (stream->activity().operations != 0) all.push_back(describe(*stream));
    }
  }
  return all;
}

}  // namespace anabranch
