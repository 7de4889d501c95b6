#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "anabranch/explore/explore.hpp"
#include "anabranch/graph/graph.hpp"
#include "anabranch/hazard/history.hpp"
#include "chooser.hpp"
#include "declaration.hpp"
#include "runnable.hpp"
#include "schedule.hpp"

namespace anabranch::explore {

// Runs the operations of all devices that it controls, one at a time, on the threads of the host that wait for them.
//
// The host threads are the one that began the run and those of host functions. While one of them runs program code, no
// operation runs; once all are waiting, one of them runs operations until some host thread can continue. That thread
// continues at once: between two waits it affects others only by the operations that it enqueues and by its queries.
//
// Lock order: this mutex, then those of streams. Operations and program code run without this mutex.
class Controller final : public Exploration {
 public:
  explicit Controller(std::unique_ptr<Chooser> chooser) : chooser_(std::move(chooser)) {}
  ~Controller() override;

  bool more() const noexcept override { return chooser_->more(); }
  void begin() override;
  bool drain(std::chrono::nanoseconds timeout, bool give_up) override;
  Outcome end(bool details) override;
  std::size_t events() const noexcept override { return run_.size(); }
  double bound() const noexcept override;

  // The controller that has a run in progress, or null.
  static Controller* current() noexcept;

  // -- for devices; any thread --
  // This thread is about to enqueue an operation with these accesses.
  void expect(Stream& stream, std::span<const Touch> touches);
  // The operation was enqueued. Without a preceding `expect`, it accesses nothing.
  void enqueued(Stream& stream, Runnable& runnable, Point point, Description description);
  // The next operation is a graph, whose nodes, with these accesses, are operations of their own.
  void expect_nodes(Stream& stream, const Graph& graph, std::span<const NodeTouch> touches);
  // The names of the parameters that the newest operation of the stream accesses memory through.
  void name(Stream& stream, std::vector<std::string> names);
  // The host got this memory.
  void allocated(const std::byte* memory);
  // A stream object is reused.
  void opened(Stream& stream, Runnable& runnable);
  // It may have an operation to run. What runs a host function has come to the end of it.
  void ready(Runnable& runnable) noexcept;
  // A host function begins: the runnable is not ready before it ends.
  void calling(Runnable& runnable) noexcept;
  // As `Backend::synchronize`, of which the failure is left to the caller. Throws Error(value) in a deadlock.
  bool synchronize(Stream& stream, Runnable& runnable, Point point, std::chrono::nanoseconds timeout);
  void note_uncontrolled();
  void linger();
  void leave();
  void run_all();
  void host_accesses(const Touch& touch);
  void host_records(const Event& event, const Stream& stream);
  void host_reads(const Event& event);
  void ask(Stream& stream, Point point, const char* what = "query");
  std::uint64_t begin_view(const Touch& touch);
  void end_view(std::uint64_t number);
  void pass_views(Stream& stream);
  void opened(const HostOperation& gate);

 private:
  enum Kind : std::uint8_t {
    main_host,
    function_host,
    thread_host,
    stream_of_host,
    stream_before,
    block_of_host,
    node_of_graph
  };
  struct Node {
    std::string what;
    std::vector<MemoryUse> uses = {};
    std::vector<std::uint32_t> after = {};
    bool last = true;              // no node comes after it
    Runnable* runnable = nullptr;  // once it is ready
  };
  // Who enqueued an operation, and when: then, and when the main host last did anything that this host knew of.
  struct Origin {
    Process host = 0;
    std::uint64_t sequence = 0;
    std::uint64_t main = 0;
  };
  struct Operation {
    std::shared_ptr<Step> step;
    Reach created;                        // what the host knew when it enqueued it
    std::vector<EventId> waits;           // what it starts after
    const HostOperation* gate = nullptr;  // and, of a gate, what the host knew when it opened it
    std::uint64_t sequence = 0;
    Origin origin;
    std::string what;
    Site site;
    std::vector<Declared> declared;  // what is to be verified
    std::vector<std::string> names;  // of the parameters that it is about
    std::vector<Node> nodes;         // of a graph, until it has begun; the operation itself is the end of the graph
  };
  // A graph that a stream has begun.
  struct Begun {
    EventId graph;
    Reach before;
    std::vector<Node> nodes;
    std::uint64_t sequence;
    std::string name;
    Site site;
    Origin origin;
  };
  // The operations of a runnable, and what it has done.
  struct Source {
    Process process = 0;
    Point base = 0;  // the point before its first operation of this run
    std::uint32_t enqueued = 0;
    std::deque<Operation> queue;
    Reach past;
    std::string name;
  };
  struct Host {
    Process process = 0;
    Reach past;
    std::uint32_t queries = 0;
    std::uint32_t streams = 0;
    std::uint32_t blocks = 0;
    std::uint64_t thread = 0;      // 0: of a function that has not called anything yet
    Runnable* function = nullptr;  // of a host function: what called it
    EventId called = {};           // the operation that it is
    Origin origin = {};            // of that operation
    bool lingers = false;          // it goes on after the operation, of which `function` is no more then
    bool counted = true;           // among `running_`
    // Of a thread that is not counted: when it may run operations, if none is enqueued before; and what was then.
    std::chrono::steady_clock::time_point alone_from = {};
    std::uint64_t seen = 0;
    bool blocked = false;
    bool go = false;               // it may go on
    bool drains = false;           // it runs what can be run even after a deadlock
    Runnable* awaited = nullptr;   // while blocked; none, and no query: everything
    Point point = 0;               // of `awaited`
    std::shared_ptr<Step> asking;  // while blocked in a query
    const char* asked_as = "";     // what it is called
    EventId asked = {};            // the last query, and how often it was asked
    int repeats = 0;
    std::string name;
  };
  // An access that a host makes until it ends.
  struct View {
    std::uint64_t number;
    Process host;
    Step step;
  };
  // What a host last did to a stream or to memory.
  struct HostAction {
    Process host;
    EventId function;  // that it is; none: the main host, or nothing that others can wait for
    bool written;
    std::uint64_t sequence;
  };
  struct Coming {
    Stream* stream = nullptr;
    std::vector<MemoryUse> uses;
    std::vector<Declared> declared;
    std::vector<Node> nodes;
    Site site = {};
  };
  struct Candidate {
    Source* source = nullptr;  // null: a query of the host's
    Runnable* runnable = nullptr;
    Host* host = nullptr;
    std::uint64_t sequence = 0;
  };

  static Coming& coming() noexcept;
  void settle();

  // All of these require the lock.
  Process number(int kind, std::uint64_t one, std::uint64_t two);
  EventId node_id(EventId graph, std::size_t node);
  Host& this_host();
  Source& source_of(Stream& stream, Runnable& runnable);
  std::uint32_t block_of(Storage& storage, Host& host);
  void add_use(std::vector<MemoryUse>& uses, const Touch& touch, Host& host);
  EventId event_at(const Stream& stream, Point point);
  void learn(Reach& reach, EventId event);
  bool may_go_on(const Host& host);
  void block(Host& host);
  void release(Host& host);
  bool wait(std::unique_lock<std::mutex>& lock, Host& host, std::chrono::nanoseconds timeout);
  // Whether a thread of the program may run operations while the main thread is elsewhere.
  bool is_left_alone(Host& host);
  bool advance_alone(std::unique_lock<std::mutex>& lock);
  bool wake_one();
  bool advance(std::unique_lock<std::mutex>& lock);
  bool begin_graph(std::unique_lock<std::mutex>& lock);
  void ready_node(Runnable& runnable, Begun& graph, std::uint32_t number);
  void forget_graph(const Runnable& stream);
  void collect();
  std::size_t decide();
  void run(std::unique_lock<std::mutex>& lock, const Candidate& chosen);
  void step(std::unique_lock<std::mutex>& lock, Runnable& runnable);
  void run_parts(std::unique_lock<std::mutex>& lock);
  void answer(Host& host);
  void verify(std::unique_lock<std::mutex>& lock, Operation& operation, Runnable& runnable);
  bool give_up_one();
  void find_deadlock();
  void end_function(Runnable& runnable);
  bool in_progress(EventId event) const;
  bool comes_after(const Host& host, const HostAction& action) const;
  void note(const Host& host, std::uint64_t object, bool written, std::uint64_t sequence);
  void note(const Host& host, const std::vector<MemoryUse>& uses, std::uint64_t sequence);
  void note(const Host& host, const Operation& operation);

  std::unique_ptr<Chooser> chooser_;
  std::map<std::tuple<int, std::uint64_t, std::uint64_t>, Process> numbers_;  // the same in every run

  std::mutex mutex_;
  std::condition_variable changed_;
  Run run_;
  Schedule schedule_;
  std::vector<Happened> happened_;
  std::unordered_map<const Runnable*, Source> sources_;
  std::unordered_map<const Stream*, Runnable*> streams_;
  std::unordered_map<const Runnable*, Begun> graphs_;  // by their streams
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<Stuck> stuck_;
  std::unordered_map<std::uint64_t, Reach> completions_;        // of functions that waited
  std::unordered_map<const std::byte*, std::uint32_t> blocks_;  // numbers of memory allocated in this run
  std::unordered_map<const HostOperation*, Reach> gates_;
  std::unordered_map<std::uint64_t, std::vector<HostAction>> host_actions_;  // by streams, blocks and events
  Origin origin_;                                                            // of the operation that runs
  std::vector<View> views_;
  std::uint64_t newest_view_ = 0;
  std::vector<Runnable*> ready_;
  std::deque<Runnable*> inner_;  // parts of the operation that runs
  std::vector<Candidate> candidates_;
  std::vector<StepPointer> steps_;
  std::vector<std::pair<const Runnable*, Process>> opened_;  // streams of this run that have enqueued nothing yet
  std::uint64_t sequence_ = 0;
  std::uint64_t generation_ = 0;                // of the run; unique in the process
  std::map<const Runnable*, Process> outside_;  // streams that are there before a run
  int running_ = 0;                             // host threads that run code of the program
  bool advancing_ = false;
  bool giving_up_ = false;
  bool uncontrolled_ = false;
  std::string diverged_;
  Ref<Failure> failure_;
  std::string failed_at_;
  std::unordered_set<std::size_t> verified_;  // hashes of the kernels and arguments that need not be verified again
  bool settled_ = false;
  std::string violation_;
  Site violated_at_ = {};
};

}  // namespace anabranch::explore
