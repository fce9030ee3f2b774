#include "constraints/check_order.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

namespace clew::constraints {
namespace {

class OperationalMachine {
 public:
  OperationalMachine(const ConstraintTrace& trace, const Assignment& unknowns)
      : trace_(trace),
        values_(unknowns),
        evaluator_(values_),
        next_(trace.threads.size(), 0),
        latest_lo_(trace.threads.size(), 0) {}

  Status Run(const AccessOrder& order) {
    CLEW_RETURN_IF_ERROR(Start());
    for (uint32_t thread : order) {
      CLEW_RETURN_IF_ERROR(Step(thread));
    }
    return End();
  }

 private:
  Result<uint64_t> Value(const Expr* e, const char* what) {
    const auto value = evaluator_.Evaluate(e);
    if (!value) {
      return InvalidArgument("{} depends on a value that is not known", what);
    }
    return *value;
  }

  void StoreBytes(TraceeAddr addr, uint32_t size, uint64_t value) {
    for (uint32_t i = 0; i < size; ++i) {
      memory_[addr.as_int() + i] = static_cast<uint8_t>(value >> (8 * i));
    }
  }

  uint64_t LoadBytes(TraceeAddr addr, uint32_t size) {
    uint64_t value = 0;
    for (uint32_t i = 0; i < size; ++i) {
      value |= uint64_t{memory_[addr.as_int() + i]} << (8 * i);
    }
    return value;
  }

  Status Start() {
    for (const auto& initial : trace_.initial) {
      CLEW_ASSIGN_OR_RETURN(value, Value(initial.value, "initial memory"));
      StoreBytes(initial.addr, initial.size_bytes, value);
    }
    return {};
  }

  Status CheckTime(AccessRef at, const TraceAccess& access) {
    for (uint32_t u = 0; u < latest_lo_.size(); ++u) {
      const uint64_t hi = access.time.hi.as_int();
      if (u != at.thread && latest_lo_[u] > hi &&
          latest_lo_[u] - hi > trace_.clock_slack_ticks) {
        return InvalidArgument(
            "thread {} access {} may be at {} at the latest, but thread {} "
            "has passed {}",
            at.thread, at.index, hi, u, latest_lo_[u]);
      }
    }
    latest_lo_[at.thread] =
        std::max(latest_lo_[at.thread], access.time.lo.as_int());
    return {};
  }

  Status CheckSlice(AccessRef at, const TraceAccess& access) {
    if (access.slice == kNoSlice) {
      return {};
    }
    const auto& slice = trace_.slices[access.slice];
    const auto [on_core, is_new] =
        slice_on_core_.try_emplace(slice.core.as_int(), slice.on_core);
    if (slice.on_core < on_core->second) {
      return InvalidArgument(
          "thread {} access {}: slice {} of core {} runs after slice {}",
          at.thread, at.index, slice.on_core, slice.core, on_core->second);
    }
    on_core->second = slice.on_core;
    return {};
  }

  Status Step(uint32_t thread) {
    if (thread >= next_.size() ||
        next_[thread] >= trace_.threads[thread].accesses.size()) {
      return InvalidArgument("thread {} has no access left", thread);
    }
    const AccessRef at{thread, next_[thread]++};
    const TraceAccess& access = trace_.At(at);
    place_.push_back(at);
    CLEW_RETURN_IF_ERROR(CheckTime(at, access));
    CLEW_RETURN_IF_ERROR(CheckSlice(at, access));
    if (access.read_value != nullptr) {
      values_.Set(access.read_value->var(),
                  LoadBytes(access.addr, access.size_bytes));
    }
    if (Writes(access.kind)) {
      CLEW_ASSIGN_OR_RETURN(value, Value(access.written_value, "a write"));
      StoreBytes(access.addr, access.size_bytes, value);
    }
    return {};
  }

  Status End() {
    for (uint32_t t = 0; t < next_.size(); ++t) {
      if (next_[t] != trace_.threads[t].accesses.size()) {
        return InvalidArgument("thread {} stops at access {}", t, next_[t]);
      }
    }
    CLEW_RETURN_IF_ERROR(CheckFacts());
    CLEW_RETURN_IF_ERROR(CheckPath());
    return CheckMemory();
  }

  Status CheckFacts() {
    std::map<AccessRef, size_t> position;
    for (size_t i = 0; i < place_.size(); ++i) {
      position[place_[i]] = i;
    }
    for (const auto& fact : trace_.order) {
      if (position.at(fact.before) >= position.at(fact.after)) {
        return InvalidArgument(
            "thread {} access {} must be before thread {} access {}",
            fact.before.thread, fact.before.index, fact.after.thread,
            fact.after.index);
      }
    }
    return {};
  }

  Status CheckPath() {
    for (const auto& path : trace_.path) {
      CLEW_ASSIGN_OR_RETURN(value, Value(path.condition, "a condition"));
      if (value != 1) {
        return InvalidArgument(
            "thread {} after {} accesses: {} does not hold: {}", path.thread,
            path.after_accesses, trace_.groups[path.group.as_int()].label,
            ToText(path.condition));
      }
    }
    return {};
  }

  Status CheckMemory() {
    for (const auto& demand : trace_.final_memory) {
      const uint64_t found = LoadBytes(demand.addr, demand.size_bytes);
      if (found != demand.value) {
        return InvalidArgument("memory at {:#x} ends as {:#x}, recorded {:#x}",
                               demand.addr, found, demand.value);
      }
    }
    return {};
  }

  const ConstraintTrace& trace_;
  Assignment values_;
  Evaluator evaluator_;
  std::unordered_map<uint64_t, uint8_t> memory_;
  std::vector<uint32_t> next_;
  std::vector<uint64_t> latest_lo_;
  std::unordered_map<uint32_t, uint32_t> slice_on_core_;
  std::vector<AccessRef> place_;
};

}  // namespace

Status CheckOrder(const ConstraintTrace& trace, const AccessOrder& order,
                  const Assignment& unknowns) {
  return OperationalMachine(trace, unknowns).Run(order);
}

}  // namespace clew::constraints
