#pragma once

// Collectives: operations of a stream that several processes carry out together. A transport carries them; a `Channel`
// is one communicator of it; one progress thread per process starts them and asks whether they are over.

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

// A call of a transport, in its words: types, operations and communicators are its handles, counts are elements of the
// type. The transport keeps the call's state in `request`, which must stay in place until the call is over.
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

// One thread at a time calls these members. None of them blocks.
class Transport : public RefCounted {
 public:
  // Both return an error as text, or an empty string. `test` sets `over` once the call is.
  virtual std::string start(std::uintptr_t communicator, Transfer& transfer) = 0;
  virtual std::string test(Transfer& transfer) = 0;
  // Gives a communicator back, once nothing is in flight on it.
  virtual void give_back(std::uintptr_t communicator) noexcept = 0;
};

// What is left to do once a sum has arrived: dividing it by the number of ranks. Complex numbers count as two.
struct Division {
  void* data = nullptr;  // null: nothing
  std::int64_t count = 0;
  bool wide = false;  // of double, not float
  int by = 1;
};

// What messages call a collective.
struct Label {
  std::string name;
  Site site;
  bool common = true;  // whether all ranks take part, which then count it alike; false: a message
};

// A collective that is not over, for messages.
struct Waiting {
  bool found = false;
  std::uint64_t number = 0;  // among those that all ranks take part in; 0: a message
  Label label;
  double seconds = 0;  // since it was enqueued
};

class Channel;

// A collective, or several messages as one operation. Its stream waits until all transfers are over.
class Collective final : public Pending {
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
  std::uint64_t number_ = 0;  // among those of its channel that all ranks take part in, from 1; 0: a message
  Waiting described() const;
  bool reached_ = false;   // guarded by the progress thread's mutex
  bool reported_ = false;  // owned by whoever drives, as is `began_`
  std::chrono::steady_clock::time_point began_;
};

// What went wrong with a collective. The layer above decides what becomes of its channel.
struct Trouble {
  Ref<Channel> channel;
  Waiting collective;
  bool late = false;  // its time is up
  std::string text;   // else: the error
};

// A communicator. Its collectives start in the order in which they were enqueued, each once its stream has reached it.
class Channel final : public RefCounted {
 public:
  Channel(Ref<Transport> transport, std::uintptr_t communicator, std::chrono::nanoseconds timeout)
      : transport_(std::move(transport)), communicator_(communicator), timeout_(timeout) {}

  // Call before the collective's stream can reach it. Returns its number among those that all ranks take part in, 0 for
  // a message. If the channel has failed, the collective has, too.
  std::uint64_t enqueue(const Ref<Collective>& collective);
  // Takes back a collective that no stream will reach.
  void withdraw(const Ref<Collective>& collective);
  // Fails everything that was enqueued and is not over, and everything enqueued later. Only the first call has an
  // effect. Memory that the transport may still access is never freed.
  void fail(const Ref<Failure>& failure);
  // The oldest collective that is not over.
  Waiting oldest() const;
  // Gives the communicator back once everything enqueued is over. Nothing may be enqueued afterwards.
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

// A collective of a graph. Each replay is one of the channel, with a number of its own, which it gets when the replay
// is launched: in the order of the program, as on the other ranks.
class CollectiveWork final : public HostWork {
 public:
  CollectiveWork(Ref<Channel> channel, std::vector<Transfer> transfers, std::vector<Ref<Storage>> kept,
                 Division division, Label label);
  // Call before each replay is launched, and `withdraw` if it is not launched after all.
  void reserve();
  void withdraw();
  Ref<Pending> make(const Ref<RefCounted>& context) noexcept override;

 private:
  const Ref<Channel> channel_;
  const std::vector<Transfer> transfers_;
  const std::vector<Ref<Storage>> kept_;
  const Division division_;
  const Label label_;
  std::mutex mutex_;
  std::deque<Ref<Collective>> reserved_;  // for replays that have not come to it
};

// The thread that drives all channels of the process. It sleeps while nothing is in flight. A host thread that waits
// drives them in its place for a while: a small collective is over before a thread would have been woken for it.
class Progress {
 public:
  // The one of this process, never destroyed. The thread starts at the first collective.
  static Progress& instance();

  // Readable while there is trouble to be taken: a descriptor for `poll`.
  int descriptor() const noexcept { return descriptor_; }
  std::vector<Trouble> take_trouble();
  // The number of collectives that were started and are not over.
  std::size_t in_flight() const noexcept { return in_flight_.load(std::memory_order_acquire); }
  // Ends the thread. What is in flight stays so for ever. Returns whether nothing was.
  bool stop();
  // Held by calls of the transport from other threads, where it allows one at a time.
  std::mutex& transport_mutex() noexcept { return transport_mutex_; }

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
  void report(Trouble trouble);
  void rest(int idle_rounds);

  std::mutex mutex_;
  std::mutex transport_mutex_;
  std::condition_variable woken_;
  std::condition_variable ended_;
  std::mutex driving_;  // held for each round; taken before the others
  bool running_ = false;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> attention_{false};  // something to do since the last round
  bool dozing_ = false;                 // the thread sleeps, but will soon look by itself
  std::vector<Ref<Channel>> listed_;    // with something to do
  std::vector<Trouble> trouble_;
  std::vector<Ref<Collective>> flying_;           // guarded by `driving_`
  std::atomic<int> helping_{0};                   // 1 while a host thread drives
  std::chrono::steady_clock::time_point helped_;  // when the last host thread helped
  std::atomic<std::size_t> in_flight_{0};
  const int descriptor_;
};

}  // namespace anabranch
