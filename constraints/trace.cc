#include "constraints/trace.h"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

#include "constraints/expr_eval.h"

namespace clew::constraints {
namespace {

// Where each variable gets its value: absent for unknowns.
using Readers = std::map<VarId, AccessRef>;

bool IsSizeValid(uint32_t size_bytes) {
  return size_bytes >= 1 && size_bytes <= kAccessBytesMax;
}

Status ValidateAccess(const TraceAccess& access, const ConstraintTrace& trace,
                      AccessRef at) {
  const auto bad = [&](const char* what) {
    return InvalidArgument("thread {} access {}: {}", at.thread, at.index,
                           what);
  };
  if (!IsSizeValid(access.size_bytes)) {
    return bad("size is not in 1..8");
  }
  const uint32_t bits = access.size_bytes * 8;
  if (access.addr.as_int() + access.size_bytes < access.addr.as_int()) {
    return bad("wraps around the end of the address space");
  }
  if (access.read_value != nullptr &&
      (!Reads(access.kind) || access.read_value->op != ExprOp::kVar ||
       access.read_value->width != bits)) {
    return bad("the value read is not a variable of the access's width");
  }
  if (Writes(access.kind) != (access.written_value != nullptr) ||
      (Writes(access.kind) && access.written_value->width != bits)) {
    return bad("the value written is missing or of another width");
  }
  if (access.slice != kNoSlice && access.slice >= trace.slices.size()) {
    return bad("no such slice");
  }
  return {};
}

Result<Readers> CollectReaders(const ConstraintTrace& trace) {
  Readers readers;
  for (uint32_t t = 0; t < trace.threads.size(); ++t) {
    const auto& accesses = trace.threads[t].accesses;
    for (uint32_t i = 0; i < accesses.size(); ++i) {
      CLEW_RETURN_IF_ERROR(ValidateAccess(accesses[i], trace, {t, i}));
      const Expr* read = accesses[i].read_value;
      if (read != nullptr &&
          !readers.emplace(read->var(), AccessRef{t, i}).second) {
        return InvalidArgument("thread {} access {}: variable {} is read twice",
                               t, i, read->var());
      }
    }
  }
  return readers;
}

// Uses of variables by one thread, checked in program order so that every node
// is looked at once.
class UseCheck {
 public:
  UseCheck(const Readers& readers, uint32_t thread)
      : readers_(readers), thread_(thread) {}

  // REQUIRES: called with ascending `accesses`.
  Status Check(const Expr* root, uint32_t accesses) {
    std::vector<const Expr*> stack = {root};
    while (!stack.empty()) {
      const Expr* e = stack.back();
      stack.pop_back();
      if (e == nullptr || !seen_.insert(e).second) {
        continue;
      }
      CLEW_RETURN_IF_ERROR(CheckNode(e, accesses));
      stack.insert(stack.end(), e->operands.begin(), e->operands.end());
    }
    return {};
  }

 private:
  Status CheckNode(const Expr* e, uint32_t accesses) const {
    if (e->op != ExprOp::kVar) {
      return {};
    }
    const auto read = readers_.find(e->var());
    if (read != readers_.end() &&
        (read->second.thread != thread_ || read->second.index >= accesses)) {
      return InvalidArgument(
          "thread {} uses variable {} after {} accesses, but thread {} reads "
          "it at access {}",
          thread_, e->var(), accesses, read->second.thread, read->second.index);
    }
    return {};
  }

  const Readers& readers_;
  uint32_t thread_;
  std::unordered_set<const Expr*> seen_;
};

Status ValidateUses(const ConstraintTrace& trace, const Readers& readers) {
  std::vector<std::vector<std::pair<uint32_t, const Expr*>>> uses(
      trace.threads.size());
  for (uint32_t t = 0; t < trace.threads.size(); ++t) {
    const auto& accesses = trace.threads[t].accesses;
    for (uint32_t i = 0; i < accesses.size(); ++i) {
      if (accesses[i].written_value != nullptr) {
        const uint32_t known = Reads(accesses[i].kind) ? i + 1 : i;
        uses[t].emplace_back(known, accesses[i].written_value);
      }
    }
  }
  for (const PathCondition& condition : trace.path) {
    if (condition.thread >= trace.threads.size() ||
        condition.after_accesses >
            trace.threads[condition.thread].accesses.size() ||
        condition.condition == nullptr || condition.condition->width != 1) {
      return InvalidArgument("malformed path condition at {:#x}", condition.ip);
    }
    uses[condition.thread].emplace_back(condition.after_accesses,
                                        condition.condition);
  }
  for (uint32_t t = 0; t < uses.size(); ++t) {
    std::ranges::stable_sort(uses[t], {},
                             [](const auto& use) { return use.first; });
    UseCheck check(readers, t);
    for (const auto& [known, root] : uses[t]) {
      CLEW_RETURN_IF_ERROR(check.Check(root, known));
    }
  }
  return {};
}

bool Exists(const ConstraintTrace& trace, AccessRef ref) {
  return ref.thread < trace.threads.size() &&
         ref.index < trace.threads[ref.thread].accesses.size();
}

Status ValidateGroup(const ConstraintTrace& trace, GroupId group) {
  if (group.as_int() >= trace.groups.size()) {
    return InvalidArgument("evidence group {} of {}", group,
                           trace.groups.size());
  }
  return {};
}

Status ValidateGroups(const ConstraintTrace& trace) {
  CLEW_RETURN_IF_ERROR(ValidateGroup(trace, trace.time_group));
  CLEW_RETURN_IF_ERROR(ValidateGroup(trace, trace.core_group));
  for (const PathCondition& condition : trace.path) {
    CLEW_RETURN_IF_ERROR(ValidateGroup(trace, condition.group));
  }
  for (const FinalDemand& demand : trace.final_memory) {
    CLEW_RETURN_IF_ERROR(ValidateGroup(trace, demand.group));
  }
  for (const OrderFact& fact : trace.order) {
    CLEW_RETURN_IF_ERROR(ValidateGroup(trace, fact.group));
  }
  return {};
}

Status ValidateInitial(const ConstraintTrace& trace, const Readers& readers) {
  std::map<uint64_t, uint64_t> ends;  // by begin
  for (const InitialValue& initial : trace.initial) {
    const uint64_t begin = initial.addr.as_int();
    if (!IsSizeValid(initial.size_bytes) || initial.value == nullptr ||
        initial.value->width != initial.size_bytes * 8 ||
        !ends.emplace(begin, begin + initial.size_bytes).second) {
      return InvalidArgument("malformed initial value at {:#x}", begin);
    }
    for (VarId var : VariablesOf(initial.value)) {
      if (readers.contains(var)) {
        return InvalidArgument("initial value at {:#x} depends on a read",
                               begin);
      }
    }
  }
  uint64_t covered = 0;
  for (const auto& [begin, end] : ends) {
    if (begin < covered) {
      return InvalidArgument("initial values overlap at {:#x}", begin);
    }
    covered = end;
  }
  return {};
}

}  // namespace

const char* ToString(EvidenceKind kind) {
  switch (kind) {
    case EvidenceKind::kPath:
      return "path";
    case EvidenceKind::kSyscall:
      return "system call";
    case EvidenceKind::kFailure:
      return "failure";
    case EvidenceKind::kMemory:
      return "final memory";
    case EvidenceKind::kSync:
      return "synchronisation";
    case EvidenceKind::kTime:
      return "time";
    case EvidenceKind::kCore:
      return "core order";
  }
  return "?";
}

GroupId ConstraintTrace::AddGroup(EvidenceKind kind, std::string label) {
  groups.push_back({kind, std::move(label)});
  return GroupId(static_cast<uint32_t>(groups.size() - 1));
}

size_t ConstraintTrace::access_count() const {
  size_t count = 0;
  for (const TraceThread& thread : threads) {
    count += thread.accesses.size();
  }
  return count;
}

Status Validate(const ConstraintTrace& trace) {
  CLEW_ASSIGN_OR_RETURN(readers, CollectReaders(trace));
  CLEW_RETURN_IF_ERROR(ValidateUses(trace, readers));
  CLEW_RETURN_IF_ERROR(ValidateGroups(trace));
  CLEW_RETURN_IF_ERROR(ValidateInitial(trace, readers));
  for (const OrderFact& fact : trace.order) {
    if (!Exists(trace, fact.before) || !Exists(trace, fact.after)) {
      return InvalidArgument("an order fact names an access that is not there");
    }
  }
  for (const FinalDemand& demand : trace.final_memory) {
    if (!IsSizeValid(demand.size_bytes)) {
      return InvalidArgument("malformed final demand at {:#x}", demand.addr);
    }
  }
  return {};
}

bool OrderedByTime(const ConstraintTrace& trace, const TraceAccess& a,
                   const TraceAccess& b) {
  const uint64_t lo = b.time.lo.as_int();
  const uint64_t hi = a.time.hi.as_int();
  return lo > hi && lo - hi > trace.clock_slack_ticks;
}

void TightenTimes(ConstraintTrace& trace) {
  for (TraceThread& thread : trace.threads) {
    auto& accesses = thread.accesses;
    for (size_t i = 1; i < accesses.size(); ++i) {
      accesses[i].time.lo =
          std::max(accesses[i].time.lo, accesses[i - 1].time.lo);
    }
    for (size_t i = accesses.size(); i-- > 1;) {
      accesses[i - 1].time.hi =
          std::min(accesses[i - 1].time.hi, accesses[i].time.hi);
    }
  }
}

}  // namespace clew::constraints
