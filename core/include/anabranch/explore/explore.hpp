#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "anabranch/stream/host.hpp"
#include "anabranch/stream/stream.hpp"
#include "anabranch/trace/site.hpp"
#include "anabranch/trace/trace.hpp"

namespace anabranch {
class Graph;
struct NodeTouch;
struct Touch;
}  // namespace anabranch

// Runs a program again and again, under different legal schedules of its operations. While a run is on, the devices
// that can hand their ready operations to a controller, which runs one at a time and chooses which next.
namespace anabranch::explore {

// Something that happened in a run.
struct Happened {
  std::uint32_t process = 0;  // whose operation it is: a stream's or a host thread's; the same number in every run
  std::uint32_t index = 0;    // which of the process, from 1
  std::string lane;           // the name of the process
  std::string what;           // "kernel 'blur'", "copy", "query", …
  Site site = {};
  // The numbers of events in conflict with it that came before it in this run and could have come after it.
  std::vector<std::size_t> reversible = {};
};

// One that waits in a deadlock.
struct Stuck {
  std::string lane;
  std::string what;  // what it is about to do; empty: a host thread
  std::string waits_for;
  Site site = {};
};

// What is known of a run once it is over.
struct Outcome {
  bool fresh = true;     // no run before was of its class
  std::string schedule;  // with which `replay` repeats it
  std::vector<Happened> events = {};
  std::string diverged;              // what was to happen and could not: the program is not repeatable; else empty
  Ref<Failure> failure = nullptr;    // of the first operation that failed, or null
  std::string failed_at;             // what that was
  std::string violation;             // which kernel does with which parameter what it did not declare; else empty
  Site violated_at = {};             // where it was launched
  std::vector<Stuck> deadlock = {};  // who waits for whom
};

// At most one in a process has a run on at a time. One thread uses it, and calls the program in between.
class Exploration {
 public:
  // Every class of schedules once.
  static std::unique_ptr<Exploration> of_classes();
  // That many schedules at random, of which each finds a bug of depth `depth` with a probability that PCT bounds.
  static std::unique_ptr<Exploration> at_random(std::uint64_t runs, std::uint64_t seed);
  // One schedule again. Throws Error(value), which names what is wrong with the text.
  static std::unique_ptr<Exploration> of_schedule(const std::string& schedule);

  virtual ~Exploration() = default;
  // Whether there is another run.
  virtual bool more() const noexcept = 0;
  // Begins a run: the calling thread is the host. The first waits for all that was enqueued before. Throws Error(value)
  // if another exploration has a run on.
  virtual void begin() = 0;
  // The program has returned or raised: runs what it left. Blocks for `timeout` at most; returns whether it is over.
  // `give_up`: nothing more is to be found out, so what waits for what never comes is failed.
  virtual bool drain(std::chrono::nanoseconds timeout, bool give_up) = 0;
  // Ends the run, which must be drained. `details`: whether the outcome lists the events.
  virtual Outcome end(bool details) = 0;
  // The events of the newest run so far.
  virtual std::size_t events() const noexcept = 0;
  // A lower bound for the probability that one run finds a bug of depth 3, of the longest run so far; 1 if runs are not
  // at random.
  virtual double bound() const noexcept = 0;
};

// The host asks whether a point is completed, and must then ask the stream. Runs operations for as long as the answer
// takes to come out as the exploration wants it. Not under the interpreter lock.
void ask(Stream& stream, Point point);
// The host makes an access that lasts until `end_view`, with the number that is returned; 0: no run is on.
std::uint64_t begin_view(const Touch& touch);
void end_view(std::uint64_t number);
// The host has enqueued an operation on the stream. If it conflicts with a view of the host's, it happens before the
// host goes on or later: both are tried, as answers of a query are. Not under the interpreter lock.
void pass_views(Stream& stream);
// The host is about to open a gate.
void opened(const Pending& gate);
// This thread is about to launch a graph on the stream: its nodes, with these accesses, are operations of their own.
// Else a graph is one operation.
void expect_nodes(Stream& stream, const Graph& graph, std::span<const NodeTouch> touches);
// A kernel was launched: the names of the parameters for its accesses, in their order.
void name_parameters(Stream& stream, std::vector<std::string> names);

}  // namespace anabranch::explore
