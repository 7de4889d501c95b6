#include <algorithm>
#include <array>
#include <utility>

#include "anabranch/collective/collective.hpp"

namespace anabranch {

const char* name_of(Verb verb) noexcept {
  static constexpr std::array names{"all_reduce", "reduce",  "broadcast", "all_gather", "reduce_scatter", "all_to_all",
                                    "gather",     "scatter", "send",      "recv",       "barrier"};
  return names[static_cast<std::size_t>(verb)];
}

Collective::Collective(Ref<Channel> channel, std::vector<Transfer> transfers, std::vector<Ref<Storage>> kept,
                       Division division, Label label)
    : channel_(std::move(channel)),
      transfers_(std::move(transfers)),
      kept_(std::move(kept)),
      division_(division),
      label_(label) {}

Collective::~Collective() = default;

Waiting Collective::described() const {
  const std::chrono::duration<double> age = std::chrono::steady_clock::now() - made_;
  return {true, number_, label_, age.count()};
}

bool Collective::is_message_of(int rank) const noexcept {
  return std::any_of(transfers_.begin(), transfers_.end(), [rank](const Transfer& transfer) {
    return (transfer.verb == Verb::send || transfer.verb == Verb::receive) && transfer.peer == rank && !transfer.over;
  });
}

void Collective::start() noexcept {
  Progress& progress = Progress::instance();
  const std::lock_guard lock(progress.mutex_);
  reached_ = true;
  const bool from_host = std::this_thread::get_id() == maker_;
  if (!channel_->queue_.empty() && channel_->queue_.front().get() == this) progress.wake(*channel_, from_host);
}

// Without this, the other ranks would wait forever.
void Collective::skip(const Ref<Failure>& failure) noexcept {
  Progress& progress = Progress::instance();
  {
    const std::lock_guard lock(progress.mutex_);
    if (!channel_->failure_)
      progress.report({channel_, described(), false, "its stream has failed: " + failure->message()});
  }
  complete(failure);
}

std::uint64_t Channel::enqueue(const Ref<Collective>& collective) {
  Ref<Failure> failure;
  {
    const std::lock_guard lock(Progress::instance().mutex_);
    if (!failure_) {
      if (collective->label_.common) collective->number_ = ++numbered_;
      queue_.push_back(collective);
      return collective->number_;
    }
    failure = failure_;
  }
  collective->complete(failure);
  return 0;
}

void Channel::withdraw(const Ref<Collective>& collective) {
  const std::lock_guard lock(Progress::instance().mutex_);
  const auto found = std::find(queue_.begin(), queue_.end(), collective);
  if (found == queue_.end()) return;
  // Keeps the numbers equal on all ranks. Nothing was enqueued since, because one thread at a time enqueues.
  if (collective->label_.common) --numbered_;
  queue_.erase(found);
}

void Channel::fail(const Ref<Failure>& failure) {
  std::deque<Ref<Collective>> waiting;
  {
    Progress& progress = Progress::instance();
    const std::lock_guard lock(progress.mutex_);
    if (failure_) return;
    failure_ = failure;
    waiting.swap(queue_);
    progress.wake(*this);
  }
  for (const Ref<Collective>& each : waiting) each->complete(failure);
}

bool Channel::idle() const {
  const std::lock_guard lock(Progress::instance().mutex_);
  return queue_.empty() && started_ones_.empty();
}

Waiting Channel::oldest() const {
  const std::lock_guard lock(Progress::instance().mutex_);
  if (!started_ones_.empty()) return started_ones_.front()->described();
  return queue_.empty() ? Waiting() : queue_.front()->described();
}

bool Channel::lacks(int rank, std::uint64_t started, std::chrono::nanoseconds grace) const {
  Progress& progress = Progress::instance();
  const std::lock_guard driving(progress.driving_);
  const std::lock_guard lock(progress.mutex_);
  const auto is_later = [started](const Ref<Collective>& each) { return each->number_ > started; };
  if (std::any_of(queue_.begin(), queue_.end(), is_later)) return true;
  const auto before = std::chrono::steady_clock::now() - grace;
  return std::any_of(started_ones_.begin(), started_ones_.end(), [&](const Ref<Collective>& each) {
    return is_later(each) || (each->began_ < before && each->is_message_of(rank));
  });
}

void Channel::close() {
  Progress& progress = Progress::instance();
  const std::lock_guard lock(progress.mutex_);
  closed_ = true;
  progress.wake(*this);
}

}  // namespace anabranch
