#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "anabranch/collective/collective.hpp"
#include "anabranch/error.hpp"
#include "anabranch/graph/graph.hpp"
#include "anabranch/ref.hpp"
#include "anabranch/stream/stream.hpp"

namespace anabranch {

// The functions of the NCCL library that the process has loaded. All but the error's text return an ncclResult_t.
struct NcclFunctions {
  void* all_reduce = nullptr;
  void* reduce = nullptr;
  void* broadcast = nullptr;
  void* all_gather = nullptr;
  void* reduce_scatter = nullptr;
  void* send = nullptr;
  void* receive = nullptr;
  void* group_start = nullptr;
  void* group_end = nullptr;
  void* error_string = nullptr;
};

// A communicator of NCCL. Its calls reach the library in the order in which they were enqueued, which is that of the
// other ranks, on whichever streams. One thread at a time enqueues; the device's poller makes the calls of streams that
// hold work.
class NcclChannel final : public RefCounted {
 public:
  // `size`: the number of ranks.
  NcclChannel(const NcclFunctions& functions, std::uintptr_t communicator, int size)
      : functions_(functions), communicator_(communicator), size_(size) {}

  // Enqueues transfers as one operation of a stream, which may be captured. The counts of `all_to_all`, `gather` and
  // `scatter` are in bytes. Throws Error(collective) with NCCL's text, with nothing enqueued.
  Point enqueue(Stream& stream, std::vector<Transfer> transfers, const Label& label);
  // The number of the next collective that all ranks take part in, from 1.
  std::uint64_t next_number() const noexcept { return started() + 1; }
  std::uint64_t started() const noexcept { return started_.load(std::memory_order_relaxed); }

  // The oldest unfinished operation outside of graphs. Forgets the finished ones.
  Waiting oldest();
  // The error of a call that never reached NCCL because its stream had failed; empty if there is none.
  std::string failure() const;
  // Blocks the host until every enqueued operation has completed or failed.
  void finish() noexcept;
  // Returns the streams of unfinished operations. Calls not yet submitted to NCCL fail. Does not block.
  std::vector<Ref<Stream>> abandon();

 private:
  class Work;
  struct InFlight {
    std::uint64_t number;
    Label label;
    Ref<Stream> stream;
    Point point;
    std::chrono::steady_clock::time_point began;
  };

  void call(const std::vector<Transfer>& transfers, std::uintptr_t stream);
  int call(const Transfer& transfer, void* stream) const;
  // Send one part to each rank, or receive one from each; the parts are adjacent in memory.
  int send_parts(const Transfer& transfer, void* stream) const;
  int receive_parts(const Transfer& transfer, void* stream) const;
  int send(const void* data, const Transfer& transfer, int peer, void* stream) const;
  int receive(void* data, const Transfer& transfer, int peer, void* stream) const;
  // Whether no stream holds a call.
  bool all_called() const noexcept {
    return called_.load(std::memory_order_acquire) == enqueued_.load(std::memory_order_relaxed);
  }
  void prune() noexcept;
  bool completed(const InFlight& operation) noexcept;
  void note_failure(const Error& error) noexcept;

  const NcclFunctions functions_;
  const std::uintptr_t communicator_;
  const int size_;
  std::atomic<std::uint64_t> started_{0};
  std::atomic<std::uint64_t> enqueued_{0};  // calls, outside of graphs
  std::atomic<std::uint64_t> called_{0};    // calls submitted to NCCL
  std::atomic<bool> abandoned_{false};
  std::mutex calling_;  // NCCL takes one call at a time
  mutable std::mutex mutex_;
  std::deque<InFlight> in_flight_;
  std::string failure_;
};

}  // namespace anabranch
