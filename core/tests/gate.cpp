#include "gate.hpp"

#include <chrono>
#include <utility>

#include "check.hpp"

namespace anabranch::check {
namespace {

class Function final : public HostOperation {
 public:
  Function(std::function<void()> function, std::function<void()> otherwise)
      : function_(std::move(function)), otherwise_(std::move(otherwise)) {}
  void start() noexcept override {
    function_();
    complete();
  }
  void skip(const Ref<Failure>&) noexcept override { otherwise_(); }

 private:
  std::function<void()> function_;
  std::function<void()> otherwise_;
};

}  // namespace

void Log::add(const std::string& line) const {
  std::lock_guard lock(state_->mutex);
  state_->lines.push_back(line);
}

Lines Log::lines() const {
  std::lock_guard lock(state_->mutex);
  return state_->lines;
}

Point call(Stream& stream, std::function<void()> function) {
  return stream.backend().suspend(stream, make_ref<Function>(std::move(function), [] {}));
}

Point log(Stream& stream, const Log& log, const std::string& line) {
  auto pending = make_ref<Function>([log, line] { log.add(line); }, [log, line] { log.add("no " + line); });
  return stream.backend().suspend(stream, std::move(pending));
}

Point fail(Stream& stream, const std::string& message) {
  auto pending = make_ref<HostOperation>();
  pending->complete(make_ref<Failure>(message));
  return stream.backend().suspend(stream, std::move(pending));
}

Ref<Stream> stream(Backend& backend, const std::string& name, bool non_blocking) {
  return backend.create_stream({.non_blocking = non_blocking, .name = name});
}

void finish(Stream& stream) { finish(stream, stream.backend().record(stream)); }

void finish(Stream& stream, Point point) {
  if (!stream.backend().synchronize(stream, point, std::chrono::minutes(1))) {
    const std::string what = "the stream \"" + stream.name() + "\" has not come to its end within a minute";
    fail(__FILE__, __LINE__, what.c_str());
  }
}

std::string failure_at(Stream& stream, Point point) {
  try {
    finish(stream, point);
    return {};
  } catch (const AsyncError& error) {
    return error.what();
  }
}

}  // namespace anabranch::check
