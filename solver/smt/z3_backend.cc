#include "solver/smt/z3_backend.h"

#include <fmt/format.h>
#include <z3++.h>

#include "common/os/deadline.h"
#include "constraints/guess_keys.h"
#include "constraints/must_order.h"
#include "solver/smt/z3_encodings.h"
#include "solver/smt/z3_problem.h"

namespace clew::solver {

using constraints::ConstraintTrace;
using constraints::GuessedOrder;
using constraints::GuessKeys;
using constraints::MustOrder;
using constraints::TraceAccess;
using constraints::Verdict;

Z3Answer SolveWithZ3InProcess(const ConstraintTrace& trace,
                              const Z3Options& options) {
  const Deadline deadline(options.seconds);
  const auto order = MustOrder::Compute(trace, options.sources);
  if (!order) {
    Z3Answer answer;
    answer.verdict = Verdict::kUnsat;
    return answer;
  }
  // z3_read_from_encoding.cc says why; the others are Z3's own settings.
  const bool by_read_from = options.encoding == EncodingKind::kReadFrom;
  z3::set_param("smt.relevancy", by_read_from ? 0 : 2);
  z3::set_param("smt.phase_selection", by_read_from ? 0 : 3);
  try {
    Z3Problem problem(trace, *order, options);
    Z3Answer answer =
        by_read_from
            ? SolveByReadFrom(problem, GuessedOrder(*order, GuessKeys(trace)))
            : SolveByIntegers(problem, deadline);
    answer.seconds = options.seconds - deadline.seconds_left();
    return answer;
  } catch (const z3::exception& error) {
    Z3Answer answer;
    answer.why = fmt::format("z3: {}", error.msg());
    return answer;
  }
}

ConstraintTrace WhatEncodingUses(const ConstraintTrace& trace,
                                 const Z3Options& options) {
  ConstraintTrace used = trace;
  for (auto& thread : used.threads) {
    for (TraceAccess& access : thread.accesses) {
      if (!options.sources.use_time) {
        access.time = TraceAccess{}.time;
      }
      if (!options.sources.use_core) {
        access.slice = constraints::kNoSlice;
      }
    }
  }
  if (options.order_only) {
    used.path.clear();
    used.final_memory.clear();
  }
  return used;
}

}  // namespace clew::solver
