#include "controller.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "anabranch/backend.hpp"
#include "anabranch/runtime.hpp"
#include "dpor.hpp"
#include "random.hpp"

namespace anabranch::explore {
namespace {

std::atomic<Controller*> controlling{nullptr};
std::atomic<std::uint64_t> generations{0};

}  // namespace

Controller* Controller::current() noexcept { return controlling.load(std::memory_order_acquire); }

Controller::~Controller() {
  if (current() == this) end(false);
}

// Waits for what was enqueued before, whether it fails or not.
void Controller::settle() {
  for (Backend* backend : devices()) {
    if (!backend->controlled()) continue;
    for (const Ref<Stream>& stream : backend->streams()) {
      try {
        while (!backend->synchronize(*stream, stream->issued(), std::chrono::seconds(1))) {
        }
      } catch (const AsyncError&) {
        continue;
      }
    }
  }
  settled_ = true;
}

void Controller::begin() {
  if (!settled_) settle();
  Controller* none = nullptr;
  if (!controlling.compare_exchange_strong(none, this))
    throw Error(ErrorKind::value, "another exploration is running; run one at a time");
  run_.clear();
  schedule_.clear();
  happened_.clear();
  sources_.clear();
  streams_.clear();
  graphs_.clear();
  hosts_.clear();
  stuck_.clear();
  completions_.clear();
  gates_.clear();
  blocks_.clear();
  views_.clear();
  host_actions_.clear();
  ready_.clear();
  opened_.clear();
  sequence_ = 0;
  generation_ = generations.fetch_add(1) + 1;
  advancing_ = giving_up_ = uncontrolled_ = false;
  diverged_.clear();
  failure_.reset();
  failed_at_.clear();
  violation_.clear();
  auto host = std::make_unique<Host>();
  host->process = number(main_host, 0, 0);
  host->thread = thread_serial();
  host->name = "host";
  hosts_.push_back(std::move(host));
  running_ = 1;
  chooser_->begin();
  for (Backend* backend : devices()) backend->control(this);
  traces_on.fetch_add(exploration);
}

Outcome Controller::end(bool details) {
  traces_on.fetch_sub(exploration);
  for (Backend* backend : devices()) backend->control(nullptr);
  controlling.store(nullptr, std::memory_order_release);
  Outcome outcome;
  outcome.schedule = schedule_.text();
  outcome.diverged = diverged_.empty() && !giving_up_ && chooser_->left() != 0 ? "its end" : diverged_;
  outcome.failure = failure_;
  outcome.failed_at = failed_at_;
  outcome.violation = violation_;
  outcome.violated_at = violated_at_;
  outcome.deadlock = std::move(stuck_);
  outcome.uncontrolled = uncontrolled_;
  if (details) {
    for (const Reversible& pair : run_.reversible()) happened_[pair.second].reversible.push_back(pair.first);
    outcome.events = std::move(happened_);
  }
  outcome.fresh = chooser_->end(run_);
  return outcome;
}

void opened(const HostOperation& gate) {
  if (Controller* controller = Controller::current()) controller->opened(gate);
}

void name_parameters(Stream& stream, std::vector<std::string> names) {
  if (Controller* controller = Controller::current()) controller->name(stream, std::move(names));
}

double Controller::bound() const noexcept {
  const auto* random = dynamic_cast<const Random*>(chooser_.get());
  return random ? random->bound() : 1;
}

std::unique_ptr<Exploration> Exploration::of_classes() {
  return std::make_unique<Controller>(std::make_unique<Dpor>());
}

std::unique_ptr<Exploration> Exploration::at_random(std::uint64_t runs, std::uint64_t seed) {
  return std::make_unique<Controller>(std::make_unique<Random>(runs, seed));
}

std::unique_ptr<Exploration> Exploration::of_schedule(const std::string& schedule) {
  return std::make_unique<Controller>(std::make_unique<Replay>(Schedule::parse(schedule)));
}

void note_uncontrolled() {
  if (Controller* controller = Controller::current()) controller->note_uncontrolled();
}

void linger() {
  if (Controller* controller = Controller::current()) controller->linger();
}

void leave() {
  if (Controller* controller = Controller::current()) controller->leave();
}

void run_all() {
  if (Controller* controller = Controller::current()) controller->run_all();
}

void ask(Stream& stream, Point point) {
  if (Controller* controller = Controller::current()) controller->ask(stream, point);
}

}  // namespace anabranch::explore
