#pragma once

#include <stdexcept>
#include <string>

#include "anabranch/ref.hpp"
#include "anabranch/site.hpp"

namespace anabranch {

// What went wrong, by the class of exception that Python raises for it.
enum class ErrorKind { value, memory, device, event, capture, kernel, fork, driver };

// An error found before anything was enqueued. Thrown on the caller's thread; the call that throws it has changed
// nothing.
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

// An error that happened in a stream. It fails the stream for good: the stream's later work does not run, and whoever
// waits for the stream, host or stream, meets the same failure. Immutable and shared between all that met it.
//
// A `payload` is an object of the layer above (an exception), released by `release_payload` on whatever thread drops
// the failure.
class Failure final : public RefCounted {
 public:
  using Release = void (*)(void*) noexcept;

  explicit Failure(std::string message, void* payload = nullptr, Release release_payload = nullptr)
      : message_(std::move(message)), payload_(payload), release_payload_(release_payload) {}
  // Any thread, a worker or the poller too: `release_payload` must not assume that the interpreter lock is held.
  ~Failure() override {
    if (release_payload_) release_payload_(payload_);
  }

  // One of a kernel, which a launch at `site` enqueued. `raised`: an exception that the layer above can read, or empty.
  Failure(std::string message, Site site, std::string raised)
      : message_(std::move(message)), site_(site), raised_(std::move(raised)) {}

  // One that the driver told of; `code` is then not 0.
  explicit Failure(const DriverError& error) : message_(error.what()), code_(error.code()), name_(error.name()) {}

  const std::string& message() const noexcept { return message_; }
  int code() const noexcept { return code_; }
  const std::string& name() const noexcept { return name_; }
  void* payload() const noexcept { return payload_; }
  const Site& site() const noexcept { return site_; }
  const std::string& raised() const noexcept { return raised_; }

 private:
  std::string message_;
  void* payload_ = nullptr;
  Release release_payload_ = nullptr;
  int code_ = 0;
  std::string name_;
  Site site_;
  std::string raised_;
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
