// A host that enqueues operations in streams, as a model: what may happen next, and what has happened.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "explore/run.hpp"

namespace anabranch::explore {

// What the host does, one after another.
struct Action {
  enum class Kind { enqueue, wait, synchronize, query } kind = Kind::enqueue;
  Process stream = 1;         // 0 is the host
  std::size_t operation = 0;  // of the others: an operation enqueued before, by its number
  std::vector<MemoryUse> uses = {};
  bool skips = false;  // of a query: the next action is left out if the answer is yes
};
using Program = std::vector<Action>;

inline MemoryUse use(std::uint32_t block, Access access, std::size_t low = 0, std::size_t high = 8) {
  return {block, access, {low, high}};
}

class Machine {
 public:
  explicit Machine(const Program& program) : program_(program) { advance(); }

  // In the order of the program; a query of the host comes last.
  std::vector<StepPointer> possible() const {
    std::vector<StepPointer> steps;
    for (const Operation& operation : operations_) {
      if (!operation.done && ready(operation)) steps.push_back(operation.step);
    }
    if (query_) steps.push_back(query_);
    return steps;
  }
  const Reach& before(const StepPointer& step) { return step == query_ ? host_ : before_of(*step); }
  void happen(const StepPointer& step, Run* run) {
    const bool asks = step == query_;
    if (run) run->add(step, before(step));
    if (asks) {
      answer(run);
    } else {
      find(step->id).done = true;
      happened_.push_back(step);
      if (run) find(step->id).reach = run->reach(step->id);
    }
    advance();
  }
  // The same for all runs of a class: the order of each two in conflict, and the answers.
  std::string signature() const {
    std::string text = answers_;
    std::set<std::string> pairs;
    for (std::size_t i = 0; i < happened_.size(); ++i) {
      for (std::size_t j = i + 1; j < happened_.size(); ++j) {
        if (happened_[i]->conflicts(*happened_[j])) pairs.insert(name(i) + "<" + name(j));
      }
      pairs.insert(name(i));
    }
    for (const std::string& pair : pairs) text += " " + pair;
    return text;
  }
  bool over() const { return possible().empty(); }

 private:
  struct Operation {
    StepPointer step;
    std::vector<std::size_t> waits;
    Reach created;
    Reach reach;
    bool done = false;
  };

  std::string name(std::size_t i) const {
    return std::to_string(happened_[i]->id.process) + "." + std::to_string(happened_[i]->id.index);
  }
  Operation& find(EventId id) {
    for (Operation& operation : operations_) {
      if (operation.step->id == id) return operation;
    }
    throw std::string("no such operation");
  }
  bool ready(const Operation& operation) const {
    for (const std::size_t other : operation.waits) {
      if (!operations_[other].done) return false;
    }
    const EventId id = operation.step->id;
    for (const Operation& other : operations_) {
      if (other.step->id.process == id.process && other.step->id.index < id.index && !other.done) return false;
    }
    return true;
  }
  const Reach& before_of(const Step& step) {
    Operation& operation = find(step.id);
    reach_ = operation.created;
    for (const std::size_t other : operation.waits) reach_.learn(operations_[other].reach);
    for (const Operation& other : operations_) {
      if (other.step->id.process == step.id.process && other.step->id.index + 1 == step.id.index)
        reach_.learn(other.reach);
    }
    return reach_;
  }
  void answer(Run* run) {
    const Operation& asked = find(query_->asked);
    answers_ += asked.done ? 'y' : 'n';
    if (run) host_ = run->reach(query_->id);
    if (asked.done && program_[next_].skips) ++next_;
    ++next_;
    query_ = nullptr;
  }
  void advance() {
    while (next_ < program_.size() && !query_) {
      const Action& action = program_[next_];
      switch (action.kind) {
        case Action::Kind::enqueue:
        case Action::Kind::wait: {
          auto step = std::make_shared<Step>();
          step->id = {action.stream, ++indices_[action.stream]};
          step->uses = action.uses;
          operations_.push_back({std::move(step), {}, host_, {}});
          if (action.kind == Action::Kind::wait && operations_.size() > 1)
            operations_.back().waits.push_back(action.operation % (operations_.size() - 1));
          break;
        }
        case Action::Kind::synchronize:
          if (operations_.empty()) break;
          if (!operations_[action.operation % operations_.size()].done) return;
          host_.learn(operations_[action.operation % operations_.size()].reach);
          break;
        case Action::Kind::query: {
          if (operations_.empty()) break;
          auto step = std::make_shared<Step>();
          step->id = {0, ++indices_[0]};
          step->asked = operations_[action.operation % operations_.size()].step->id;
          query_ = std::move(step);
          return;
        }
      }
      ++next_;
    }
  }

  const Program& program_;
  std::size_t next_ = 0;
  std::map<Process, std::uint32_t> indices_;
  std::vector<Operation> operations_;
  std::vector<StepPointer> happened_;
  StepPointer query_;
  Reach host_;
  Reach reach_;
  std::string answers_;
};

// The classes of all runs, found by going through every one of them.
inline std::set<std::string> classes_of(const Program& program) {
  std::set<std::string> found;
  std::vector<std::vector<std::size_t>> open{{}};
  while (!open.empty()) {
    const std::vector<std::size_t> choices = std::move(open.back());
    open.pop_back();
    Machine machine(program);
    for (const std::size_t choice : choices) machine.happen(machine.possible()[choice], nullptr);
    const std::size_t ways = machine.possible().size();
    if (ways == 0) found.insert(machine.signature());
    for (std::size_t way = 0; way < ways; ++way) {
      open.push_back(choices);
      open.back().push_back(way);
    }
  }
  return found;
}

}  // namespace anabranch::explore
