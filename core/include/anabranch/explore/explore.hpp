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

// Runs a program repeatedly under different legal schedules of its operations. During a run, devices that support
// exploration pass their ready operations to a controller, which chooses the next one and runs it.
namespace anabranch::explore {

// One event of a run.
struct Happened {
  std::uint32_t process = 0;  // the number of its stream or host thread, the same in every run
  std::uint32_t index = 0;    // its position among the events of the process, from 1
  std::string lane;           // the name of the process
  std::string what;           // "kernel 'blur'", "copy", "query", …
  Site site = {};
  // Indices of the conflicting events that precede this one in this run and could also have followed it.
  std::vector<std::size_t> reversible = {};
};

// A blocked stream or host thread in a deadlock.
struct Stuck {
  std::string lane;
  std::string what;  // its next operation; empty: a host thread
  std::string waits_for;
  Site site = {};
};

// The result of a run.
struct Outcome {
  bool fresh = true;     // no earlier run was of the same class
  std::string schedule;  // `of_schedule` repeats the run
  std::vector<Happened> events = {};
  std::string diverged;              // the step that was impossible: the program is not repeatable; else empty
  Ref<Failure> failure = nullptr;    // of the first operation that failed, or null
  std::string failed_at;             // the operation that failed
  std::string violation;             // the kernel and the parameter that violate a declaration; else empty
  Site violated_at = {};             // where it was launched
  std::vector<Stuck> deadlock = {};  // empty: none
  // Some order was not the exploration's to choose: of threads of the program, or of tasks at an await.
  bool uncontrolled = false;
};

// Only one exploration of a process may have a run in progress. One thread uses it, and runs the program between the
// calls.
class Exploration {
 public:
  // Runs one schedule of every class.
  static std::unique_ptr<Exploration> of_classes();
  // Runs that many random schedules. PCT bounds the probability that one of them finds a bug.
  static std::unique_ptr<Exploration> at_random(std::uint64_t runs, std::uint64_t seed);
  // Repeats one schedule. Throws Error(value), which says why the text is invalid.
  static std::unique_ptr<Exploration> of_schedule(const std::string& schedule);

  virtual ~Exploration() = default;
  // Whether there is another run.
  virtual bool more() const noexcept = 0;
  // Begins a run; the calling thread is the host. The first run waits for all earlier work. Throws Error(value) if
  // another exploration has a run in progress.
  virtual void begin() = 0;
  // Runs the remaining operations after the program has returned or raised. Blocks for at most `timeout`; returns
  // whether all have completed. `give_up`: fails operations that wait for events that cannot happen.
  virtual bool drain(std::chrono::nanoseconds timeout, bool give_up) = 0;
  // Ends the run, which must be drained. `details`: whether the outcome lists the events.
  virtual Outcome end(bool details) = 0;
  // The number of events of the current or newest run.
  virtual std::size_t events() const noexcept = 0;
  // A lower bound for the probability that one run finds a bug of depth 3, for the longest run so far; 1 unless
  // schedules are random.
  virtual double bound() const noexcept = 0;
};

// Call before this thread enqueues an operation with these accesses that no `Submission` has described.
void expect(Stream& stream, std::span<const Touch> touches);
// Call before the host queries a point. Runs operations until the query returns the answer that the exploration has
// chosen. The caller must not hold the interpreter lock.
void ask(Stream& stream, Point point);
// The program chose an order by itself: other orders of this run stay unexplored.
void note_uncontrolled();
// Call on the thread of a host function before it completes its operation: the thread goes on as a host that comes
// after the function, until `leave`. No other host goes on meanwhile, unless this one waits.
void linger();
void leave();
// The host waits for something that only other hosts can make happen: runs all that can run. Returns once everything is
// over, or throws Error(value) in a deadlock. The caller must not hold the interpreter lock.
void run_all();
// Begins a host access that lasts until `end_view` is called with the returned number; 0: no run is in progress.
std::uint64_t begin_view(const Touch& touch);
void end_view(std::uint64_t number);
// Call after the host has enqueued an operation on the stream. If it conflicts with an open host access, exploration
// tries both orders: before the host continues, and later. The caller must not hold the interpreter lock.
void pass_views(Stream& stream);
// Call before the host opens a gate.
void opened(const HostOperation& gate);
// Call before this thread launches a graph on the stream: its nodes, with these accesses, become separate operations.
// Without this call the graph is one operation.
void expect_nodes(Stream& stream, const Graph& graph, std::span<const NodeTouch> touches);
// Call after a kernel launch: the names of its parameters, in the order of its accesses.
void name_parameters(Stream& stream, std::vector<std::string> names);

}  // namespace anabranch::explore
