#include "tests/support/brute_force.h"

#include <map>
#include <vector>

#include "constraints/expr_eval.h"

namespace clew::test {
namespace {

using constraints::Assignment;
using constraints::ConstraintTrace;
using constraints::Expr;
using constraints::TraceAccess;

class Enumeration {
 public:
  Enumeration(const ConstraintTrace& trace, uint64_t steps_max,
              const Assignment& unknowns)
      : trace_(trace),
        steps_left_(steps_max),
        next_(trace.threads.size(), 0),
        values_(unknowns) {
    for (const auto& initial : trace.initial) {
      Store(initial.addr, initial.size_bytes, Value(initial.value));
    }
  }

  std::optional<bool> Run() {
    if (Extend()) {
      return true;
    }
    return steps_left_ == 0 ? std::nullopt : std::optional(false);
  }

 private:
  // A fresh evaluator each time: values change on the way back.
  uint64_t Value(const Expr* e) const {
    return constraints::Evaluator(values_).Evaluate(e).value();
  }
  void Store(TraceeAddr addr, uint32_t size, uint64_t value) {
    for (uint32_t i = 0; i < size; ++i) {
      memory_[addr.as_int() + i] = static_cast<uint8_t>(value >> (8 * i));
    }
  }
  uint64_t Load(TraceeAddr addr, uint32_t size) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < size; ++i) {
      value |= uint64_t{memory_[addr.as_int() + i]} << (8 * i);
    }
    return value;
  }

  // Evidence that orders b (not yet done) before a.
  bool MustPrecede(constraints::AccessRef b, constraints::AccessRef a) const {
    const TraceAccess& later = trace_.At(a);
    const TraceAccess& other = trace_.At(b);
    if (constraints::OrderedByTime(trace_, other, later)) {
      return true;
    }
    for (const auto& fact : trace_.order) {
      if (fact.before == b && fact.after == a) {
        return true;
      }
    }
    if (later.slice == constraints::kNoSlice ||
        other.slice == constraints::kNoSlice) {
      return false;
    }
    const auto& mine = trace_.slices[later.slice];
    const auto& theirs = trace_.slices[other.slice];
    return mine.core == theirs.core && theirs.on_core < mine.on_core;
  }

  bool Allowed(uint32_t thread) const {
    for (uint32_t u = 0; u < next_.size(); ++u) {
      for (uint32_t i = next_[u];
           u != thread && i < trace_.threads[u].accesses.size(); ++i) {
        if (MustPrecede({u, i}, {thread, next_[thread]})) {
          return false;
        }
      }
    }
    return true;
  }

  bool PathHolds(uint32_t thread) const {
    for (const auto& path : trace_.path) {
      if (path.thread == thread && path.after_accesses == next_[thread] &&
          Value(path.condition) != 1) {
        return false;
      }
    }
    return true;
  }

  bool EndHolds() {
    for (const auto& demand : trace_.final_memory) {
      if (Load(demand.addr, demand.size_bytes) != demand.value) {
        return false;
      }
    }
    return true;
  }

  bool Extend() {
    bool all_done = true;
    for (uint32_t t = 0; t < next_.size(); ++t) {
      if (next_[t] < trace_.threads[t].accesses.size()) {
        all_done = false;
        if (Allowed(t) && StepAndExtend(t)) {
          return true;
        }
      }
    }
    return all_done && EndHolds();
  }

  bool StepAndExtend(uint32_t t) {
    if (steps_left_ == 0) {
      return false;
    }
    --steps_left_;
    const TraceAccess& access = trace_.threads[t].accesses[next_[t]];
    const uint64_t old = Load(access.addr, access.size_bytes);
    if (access.read_value != nullptr) {
      values_.Set(access.read_value->var(), old);
    }
    if (Writes(access.kind)) {
      Store(access.addr, access.size_bytes, Value(access.written_value));
    }
    ++next_[t];
    const bool found = PathHolds(t) && Extend();
    --next_[t];
    Store(access.addr, access.size_bytes, old);
    return found;
  }

  const ConstraintTrace& trace_;
  uint64_t steps_left_;
  std::vector<uint32_t> next_;
  std::map<uint64_t, uint8_t> memory_;
  Assignment values_;
};

}  // namespace

std::optional<bool> HasWitness(const ConstraintTrace& trace, uint64_t steps_max,
                               const Assignment& unknowns) {
  return Enumeration(trace, steps_max, unknowns).Run();
}

}  // namespace clew::test
