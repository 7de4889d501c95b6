// What tests put into streams of any backend.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "anabranch/backend.hpp"

namespace anabranch::check {

// Holds a stream from its making on until `open`, or the end of its scope.
class Gate {
 public:
  explicit Gate(Stream& stream)
      : pending_(make_ref<HostOperation>()), point_(stream.backend().suspend(stream, pending_)) {}
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() { open(); }

  void open() { pending_->complete(); }
  Point point() const { return point_; }

 private:
  Ref<HostOperation> pending_;
  Point point_;
};

using Lines = std::vector<std::string>;

// Lines that operations leave, in the order in which they ran. Copies are one log, which outlives a test that fails.
class Log {
 public:
  void add(const std::string& line) const;
  Lines lines() const;

 private:
  struct State {
    std::mutex mutex;
    Lines lines;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

// Enqueues a function, which must not throw; it is not called in a stream that failed before.
Point call(Stream& stream, std::function<void()> function);
// Enqueues a line for the log; in a stream that failed before, "no " and the line.
Point log(Stream& stream, const Log& log, const std::string& line);
// Enqueues an operation that fails.
Point fail(Stream& stream, const std::string& message);

// A stream of that name.
Ref<Stream> stream(Backend& backend, const std::string& name = "stream", bool non_blocking = true);
// Waits for all that is in the stream, or up to a point. Throws as `Backend::synchronize` does.
void finish(Stream& stream);
void finish(Stream& stream, Point point);
// The message of the failure that observing the point throws; empty if it throws nothing.
std::string failure_at(Stream& stream, Point point);

}  // namespace anabranch::check
