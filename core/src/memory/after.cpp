#include <atomic>
#include <memory>
#include <utility>

#include "anabranch/backend.hpp"
#include "anabranch/memory/memory.hpp"

namespace anabranch {
namespace {

// Counts the pending uses and deletes itself when the last one is completed.
class Countdown {
 public:
  Countdown(std::vector<Use> uses, void (*done)(void*) noexcept, void* context)
      : uses_(std::move(uses)), done_(done), context_(context), left_(uses_.size() + 1) {
    waiters_ = std::make_unique<Arrival[]>(uses_.size());
  }

  void begin() noexcept {
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      waiters_[i].owner = this;
      Stream& stream = *uses_[i].stream;
      if (!stream.backend().notify(stream, uses_[i].point, waiters_[i])) arrive();
    }
    arrive();
  }

 private:
  struct Arrival final : Waiter {
    void wake(const Ref<Failure>&) noexcept override { owner->arrive(); }
    Countdown* owner = nullptr;
  };

  void arrive() noexcept {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    done_(context_);
    delete this;
  }

  std::vector<Use> uses_;
  std::unique_ptr<Arrival[]> waiters_;
  void (*done_)(void*) noexcept;
  void* context_;
  std::atomic<std::size_t> left_;
};

}  // namespace

void after(std::vector<Use> uses, void (*done)(void* context) noexcept, void* context) {
  (new Countdown(std::move(uses), done, context))->begin();
}

}  // namespace anabranch
