#include "solver/explain.h"

#include <algorithm>

#include "constraints/trace_executor.h"
#include "solver/search/depth_first.h"
#include "solver/smt/z3_backend.h"

namespace clew::solver {

using constraints::ConstraintTrace;
using constraints::GroupId;
using constraints::TraceExecutor;
using constraints::Verdict;

namespace {

// How much of the time left one decision may take: the groups share it.
constexpr double kShareOfOneDecision = 0.25;
constexpr double kShareOfSearch = 0.5;

Verdict DecideBySearch(const ConstraintTrace& trace,
                       const DecideOptions& options, const Deadline& deadline) {
  auto executor = TraceExecutor::Create(trace);
  if (!executor) {
    return Verdict::kUnknown;  // unknown values: only Z3 can tell
  }
  DigestSet dead(options.memory_bytes_max);
  return DepthFirst(**executor, dead, {}).Run(deadline).verdict;
}

bool IsUsed(const ConstraintTrace& trace, GroupId group) {
  const auto is_it = [&](const auto& evidence) {
    return evidence.group == group;
  };
  return group == trace.time_group || group == trace.core_group ||
         std::ranges::any_of(trace.path, is_it) ||
         std::ranges::any_of(trace.final_memory, is_it) ||
         std::ranges::any_of(trace.order, is_it);
}

}  // namespace

Verdict Decide(const ConstraintTrace& trace, const DecideOptions& options,
               const Deadline& deadline) {
  const double share = options.use_z3 ? kShareOfSearch : 1;
  const Verdict verdict = DecideBySearch(
      trace, options, deadline.Within(deadline.seconds_left() * share));
  if (verdict != Verdict::kUnknown || !options.use_z3 || deadline.passed()) {
    return verdict;
  }
  Z3Options z3;
  z3.seconds = deadline.seconds_left();
  z3.memory_bytes_max = options.memory_bytes_max;
  const auto answer = SolveWithZ3(trace, z3);
  return answer ? answer->verdict : Verdict::kUnknown;
}

ConstraintTrace WithoutGroup(const ConstraintTrace& trace, GroupId group) {
  ConstraintTrace rest = trace;
  const auto is_it = [&](const auto& evidence) {
    return evidence.group == group;
  };
  std::erase_if(rest.path, is_it);
  std::erase_if(rest.final_memory, is_it);
  std::erase_if(rest.order, is_it);
  for (auto& thread : rest.threads) {
    for (auto& access : thread.accesses) {
      if (group == trace.time_group) {
        access.time = constraints::TraceAccess{}.time;
      }
      if (group == trace.core_group) {
        access.slice = constraints::kNoSlice;
      }
    }
  }
  return rest;
}

std::optional<std::vector<GroupId>> ExplainUnsat(const ConstraintTrace& trace,
                                                 const DecideOptions& options,
                                                 const Deadline& deadline) {
  if (Decide(trace, options, deadline) != Verdict::kUnsat) {
    return std::nullopt;
  }
  ConstraintTrace rest = trace;
  std::vector<GroupId> needed;
  for (uint32_t i = 0; i < trace.groups.size(); ++i) {
    const GroupId group(i);
    if (!IsUsed(trace, group)) {
      continue;
    }
    ConstraintTrace without = WithoutGroup(rest, group);
    const Deadline share =
        deadline.Within(deadline.seconds_left() * kShareOfOneDecision);
    if (Decide(without, options, share) == Verdict::kUnsat) {
      rest = std::move(without);
    } else {
      needed.push_back(group);
    }
  }
  return needed;
}

}  // namespace clew::solver
