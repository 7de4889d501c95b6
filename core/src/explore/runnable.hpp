#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "anabranch/error.hpp"
#include "anabranch/stream/host.hpp"
#include "anabranch/stream/stream.hpp"

namespace anabranch::explore {

enum class Readiness : std::uint8_t {
  ready,
  blocked,  // its next operation waits for another stream or for the host
  idle,     // it has no operation; the call has let go of it
};

// What a device tells of an operation that it takes.
struct Description {
  std::string what;
  bool kernel = false;                                // it can be run by way of trial
  const Pending* gate = nullptr;                      // that the host opens
  bool explicit_site = false;                         // whether the caller's place is worth finding
  std::vector<std::pair<Stream*, Point>> waits = {};  // that it starts after, apart from those before it in its stream
  bool order = false;                                 // it is there for order alone: it accesses nothing
};

class Runnable;

// A node of the graph that a stream has begun.
struct Part {
  const Runnable* stream = nullptr;
  std::uint32_t number = 0;
};

// Something that runs one operation at a time. The controller calls these from one thread at a time.
class Runnable {
 public:
  virtual Readiness readiness() noexcept = 0;
  // Runs the next operation on this thread, and then calls `Controller::ready`, unless a function of the host's has
  // begun.
  virtual void step() noexcept = 0;
  // Opens the gate that the next operation waits behind, if any. Returns whether it did.
  virtual bool give_up() noexcept = 0;
  // What the next operation waits for, of one that is blocked.
  virtual std::string waits_for() noexcept = 0;
  // Runs the next operation, a kernel, by way of trial: it stays the next.
  virtual void rehearse() noexcept = 0;
  // Whether it is a part of an operation that has begun: a node of a graph.
  virtual bool is_part() const noexcept { return false; }
  // Of a node that is an operation of its own; no stream: it is not.
  virtual Part part() const noexcept { return {}; }
  // Begins the next operation, a graph whose nodes are operations of their own: it is blocked until they are over.
  // Returns false if they are skipped.
  virtual bool begin_parts() noexcept { return false; }
  // Whether a point of the stream is completed; false of what is no stream.
  virtual bool has_reached(Point point) noexcept = 0;
  // The failure of the newest operation, or null.
  virtual Ref<Failure> failed() noexcept = 0;

 protected:
  ~Runnable() = default;
};

}  // namespace anabranch::explore
