#pragma once

// Collectives: operations of a stream that several processes carry out together. A transport carries them; a `Channel`
// is one communicator of it; one progress thread per process starts them and polls for completion.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "anabranch/graph/graph.hpp"
#include "anabranch/memory/memory.hpp"
#include "anabranch/ref.hpp"
#include "anabranch/stream/host.hpp"
#include "anabranch/trace/site.hpp"

namespace anabranch {

enum class Verb : std::uint8_t {
  all_reduce,
  reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  all_to_all,
  gather,
  scatter,
  send,
  receive,
  barrier,
};

// What messages and traces call it.
const char* name_of(Verb verb) noexcept;

// The arguments of one transport call. Types, operations and communicators are the transport's own handles; counts are
// in elements of the type. The transport keeps the call's state in `request`, whose address must not change until the
// call has completed.
struct Transfer {
  Verb verb = Verb::barrier;
  const void* send = nullptr;
  void* receive = nullptr;
  std::int64_t count = 0;
  std::uintptr_t type = 0;
  std::uintptr_t op = 0;
  int peer = 0;  // the root, or the other rank of a message
  std::uint64_t request = 0;
  bool over = false;
};

// The caller serializes calls of these members. None of them blocks.
class Transport : public RefCounted {
 public:
  // Both return the error message, or an empty string on success. `test` sets `over` once the call has completed.
  virtual std::string start(std::uintptr_t communicator, Transfer& transfer) = 0;
  virtual std::string test(Transfer& transfer) = 0;
  // Frees the communicator, on which nothing may be in flight.
  virtual void give_back(std::uintptr_t communicator) noexcept = 0;
};

// The division by the number of ranks that completes an average. A complex number counts as two values.
struct Division {
  void* data = nullptr;  // null: nothing
  std::int64_t count = 0;
  bool wide = false;  // double, not float
  int by = 1;
};

// The name and call site of a collective, for error messages.
struct Label {
  const char* name = "";  // of static storage
  Site site;
  bool common = true;  // all ranks take part and number it alike; false: a point-to-point message
};

// An unfinished collective, for error messages.
struct Waiting {
  bool found = false;
  std::uint64_t number = 0;  // counts the collectives of all ranks; 0: a message
  Label label;
  double seconds = 0;  // since it was enqueued
};

class Channel;

// A collective, or several messages as one operation. Its stream waits until all transfers have completed.
class Collective final : public HostOperation {
 public:
  // `kept`: the memory that the transport accesses.
  Collective(Ref<Channel> channel, std::vector<Transfer> transfers, std::vector<Ref<Storage>> kept, Division division,
             Label label);
  ~Collective() override;
  void start() noexcept override;
  void skip(const Ref<Failure>& failure) noexcept override;

 private:
  friend class Channel;
  friend class Progress;
  const Ref<Channel> channel_;
  std::vector<Transfer> transfers_;
  const std::vector<Ref<Storage>> kept_;
  const Division division_;
  const Label label_;
  const std::chrono::steady_clock::time_point made_ = std::chrono::steady_clock::now();
  const std::thread::id maker_ = std::this_thread::get_id();
  std::uint64_t number_ = 0;  // counts its channel's collectives of all ranks, from 1; 0: a message
  Waiting described() const;
  bool is_message_of(int rank) const noexcept;
  bool reached_ = false;   // guarded by the progress thread's mutex
  bool reported_ = false;  // guarded by `Progress::driving_`, as is `began_`
  std::chrono::steady_clock::time_point began_;
};

// A failure of a collective. The layer above decides whether the channel fails.
struct ChannelFailure {
  Ref<Channel> channel;
  Waiting collective;
  bool late = false;  // it has timed out
  std::string text;   // else: the error message
};

// A communicator. Its collectives start in the order in which they were enqueued, each once its stream has reached it.
class Channel final : public RefCounted {
 public:
  Channel(Ref<Transport> transport, std::uintptr_t communicator, std::chrono::nanoseconds timeout)
      : transport_(std::move(transport)), communicator_(communicator), timeout_(timeout) {}

  // Call before the collective's stream can reach it. Returns its number among the collectives of all ranks, 0 for a
  // message. On a failed channel the collective fails at once.
  std::uint64_t enqueue(const Ref<Collective>& collective);
  // Removes a collective that no stream will reach.
  void withdraw(const Ref<Collective>& collective);
  // Fails every unfinished collective and every later one. Only the first call has an effect. Memory that the transport
  // may still access is never freed.
  void fail(const Ref<Failure>& failure);
  // The oldest unfinished collective.
  Waiting oldest() const;
  // Whether an operation cannot complete because `rank` has ended, which started `started` operations of all ranks: a
  // later one, or a message that rank has left without for `grace`.
  bool lacks(int rank, std::uint64_t started, std::chrono::nanoseconds grace) const;
  // Frees the communicator once every enqueued collective has completed. Nothing may be enqueued afterwards.
  void close();

  bool idle() const;
  // The number of collectives started that all ranks take part in.
  std::uint64_t started() const noexcept { return started_.load(std::memory_order_relaxed); }

 private:
  friend class Collective;
  friend class Progress;
  const Ref<Transport> transport_;
  const std::uintptr_t communicator_;
  const std::chrono::nanoseconds timeout_;
  // Guarded by the progress thread's mutex.
  std::deque<Ref<Collective>> queue_;  // not started
  std::deque<Ref<Collective>> started_ones_;
  Ref<Failure> failure_;
  bool closed_ = false;
  bool listed_ = false;
  std::uint64_t numbered_ = 0;
  std::atomic<std::uint64_t> started_{0};
};

// A collective in a graph. Each replay enqueues one collective of the channel, which is numbered when the replay is
// launched: in program order, so all ranks number it alike.
class CollectiveWork final : public HostWork {
 public:
  CollectiveWork(Ref<Channel> channel, std::vector<Transfer> transfers, std::vector<Ref<Storage>> kept,
                 Division division, Label label);
  // Call before each replay is launched, and `withdraw` if it is not launched after all.
  void reserve();
  void withdraw();
  Ref<HostOperation> make(const Ref<RefCounted>& context) noexcept override;

 private:
  const Ref<Channel> channel_;
  const std::vector<Transfer> transfers_;
  const std::vector<Ref<Storage>> kept_;
  const Division division_;
  const Label label_;
  std::mutex mutex_;
  std::deque<Ref<Collective>> reserved_;  // for replays that have not reached this node
};

// The progress thread, which drives all channels of the process. It sleeps while nothing is in flight. A waiting host
// thread drives the channels in its place for a short time: a small collective completes sooner than the progress
// thread would wake up.
class Progress {
 public:
  // The instance of this process, never destroyed. The first collective starts the thread.
  static Progress& instance();

  // A descriptor for `poll`, readable while `take_failures` has something to return.
  int descriptor() const noexcept { return descriptor_; }
  std::vector<ChannelFailure> take_failures();
  // The number of collectives that have started and not completed.
  std::size_t in_flight() const noexcept { return in_flight_.load(std::memory_order_acquire); }
  // Stops the thread; collectives in flight never complete. Returns whether there were none.
  bool stop();

 private:
  friend class Channel;
  friend class Collective;
  Progress();
  void wake(Channel& channel, bool from_host = false) noexcept;
  void run() noexcept;
  void sleep();
  bool round();
  // See `HostHelp`.
  void help(bool (*over)(void*), void* context) noexcept;
  bool has_work() const noexcept { return attention_.load() || in_flight() > 0; }
  std::vector<Ref<Collective>> startable();
  void launch(std::vector<Ref<Collective>>&& fresh);
  bool test_all();
  void test(Collective& collective);
  bool over(const Collective& collective) const noexcept;
  void check_time(Collective& collective, std::chrono::steady_clock::time_point now);
  void abandon_failed();
  void finish(const Ref<Collective>& collective);
  void settle_closed(Channel& channel);
  void report(ChannelFailure failure);
  void rest(int idle_rounds);

  std::mutex mutex_;
  std::condition_variable woken_;
  std::condition_variable ended_;
  std::mutex driving_;  // held for each round, and so for each call of a transport; taken before the other
  bool running_ = false;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> attention_{false};  // something to do since the last round
  bool dozing_ = false;                 // the thread sleeps with a timeout
  std::vector<Ref<Channel>> listed_;    // with something to do
  std::vector<ChannelFailure> failures_;
  std::vector<Ref<Collective>> tested_;           // in each round; guarded by `driving_`
  std::atomic<int> helping_{0};                   // 1 while a host thread drives
  std::chrono::steady_clock::time_point helped_;  // when the last host thread helped
  std::atomic<std::size_t> in_flight_{0};
  const int descriptor_;
};

}  // namespace anabranch
