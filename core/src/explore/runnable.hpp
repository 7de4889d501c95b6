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
  idle,     // it has no operation, and the controller forgets it
};

// A device's description of an operation.
struct Description {
  std::string what;
  bool kernel = false;                                // it can be run as a trial
  const HostOperation* gate = nullptr;                // that the host opens
  bool explicit_site = false;                         // whether to record the caller's place
  std::vector<std::pair<Stream*, Point>> waits = {};  // that it starts after, apart from those before it in its stream
  bool order = false;                                 // it only creates order and accesses nothing
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
  // Runs the next operation on this thread, and then calls `Controller::ready` unless the operation has started a host
  // function.
  virtual void step() noexcept = 0;
  // Opens the gate that blocks the next operation, if any. Returns whether there was one.
  virtual bool give_up() noexcept = 0;
  // For a blocked runnable: describes what its next operation waits for.
  virtual std::string waits_for() noexcept = 0;
  // Runs the next operation, a kernel, as a trial: it remains the next operation.
  virtual void rehearse() noexcept = 0;
  // Whether it is a part of an operation that has begun: a node of a graph.
  virtual bool is_part() const noexcept { return false; }
  // Of a node that is an operation of its own; no stream: it is not.
  virtual Part part() const noexcept { return {}; }
  // Begins the next operation, a graph whose nodes are separate operations; the runnable is blocked until they have
  // completed. Returns false if they are skipped.
  virtual bool begin_parts() noexcept { return false; }
  // Whether a point of the stream is completed; false for runnables that are not streams.
  virtual bool has_reached(Point point) noexcept = 0;
  // The failure of the newest operation, or null.
  virtual Ref<Failure> failed() noexcept = 0;

 protected:
  ~Runnable() = default;
};

}  // namespace anabranch::explore
