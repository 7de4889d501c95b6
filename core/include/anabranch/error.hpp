#pragma once

#include <atomic>
#include <stdexcept>
#include <string>

#include "anabranch/ref.hpp"
#include "anabranch/trace/site.hpp"

namespace anabranch {

// The kind of an error, by the exception class that Python raises for it.
enum class ErrorKind { value, memory, device, event, capture, kernel, fork, collective, driver };

// An error found before anything was enqueued. The call throws it on the caller's thread and has changed nothing.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

// An error that a device's driver returned.
class DriverError : public Error {
 public:
  DriverError(int code, std::string name, const std::string& message)
      : Error(ErrorKind::driver, message), code_(code), name_(std::move(name)) {}
  int code() const noexcept { return code_; }
  const std::string& name() const noexcept { return name_; }

 private:
  int code_;
  std::string name_;
};

// An error of an operation in a stream. It fails the stream for good: later work of the stream does not run, and every
// stream or host that waits for it gets the same failure. Immutable, but for the note that it was told, and shared.
//
// A `payload` is an object of the layer above (an exception). `release_payload` releases it, on the thread that drops
// the last reference to the failure.
class Failure final : public RefCounted {
 public:
  using Release = void (*)(void*) noexcept;

  explicit Failure(std::string message, void* payload = nullptr, Release release_payload = nullptr)
      : message_(std::move(message)), payload_(payload), release_payload_(release_payload) {}
  // Runs on any thread, including workers and the poller, so `release_payload` must not assume the interpreter lock.
  ~Failure() override {
    if (release_payload_) release_payload_(payload_);
  }

  // A kernel's failure; the launch at `site` enqueued it. `raised`: an exception that the layer above can unpickle, or
  // empty.
  Failure(std::string message, Site site, std::string raised)
      : message_(std::move(message)), site_(site), raised_(std::move(raised)) {}

  // An error that the driver reported; `code` is nonzero.
  explicit Failure(const DriverError& error) : message_(error.what()), code_(error.code()), name_(error.name()) {}

  const std::string& message() const noexcept { return message_; }
  int code() const noexcept { return code_; }
  const std::string& name() const noexcept { return name_; }
  void* payload() const noexcept { return payload_; }
  const Site& site() const noexcept { return site_; }
  const std::string& raised() const noexcept { return raised_; }

  // Whether the layer above has raised it. Any thread may note it.
  bool told() const noexcept { return told_.load(std::memory_order_relaxed); }
  void note_told() noexcept { told_.store(true, std::memory_order_relaxed); }

 private:
  std::string message_;
  void* payload_ = nullptr;
  Release release_payload_ = nullptr;
  int code_ = 0;
  std::string name_;
  Site site_;
  std::string raised_;
  std::atomic<bool> told_{false};
};

// Thrown on the host by a call that observes a failed stream.
class AsyncError : public Error {
 public:
  explicit AsyncError(Ref<Failure> failure)
      : Error(ErrorKind::kernel, failure->message()), failure_(std::move(failure)) {}
  const Ref<Failure>& failure() const noexcept { return failure_; }

 private:
  Ref<Failure> failure_;
};

}  // namespace anabranch
