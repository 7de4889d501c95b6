#pragma once

#include <stdexcept>
#include <string>

#include "anabranch/ref.hpp"

namespace anabranch {

// What went wrong, by the class of exception that Python raises for it.
enum class ErrorKind { value, memory, device, event, kernel, fork };

// An error found before anything was enqueued. Thrown on the caller's thread; the call that throws it has changed
// nothing.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
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
  ~Failure() override {
    if (release_payload_) release_payload_(payload_);
  }

  const std::string& message() const noexcept { return message_; }
  void* payload() const noexcept { return payload_; }

 private:
  std::string message_;
  void* payload_;
  Release release_payload_;
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
