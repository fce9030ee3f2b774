#ifndef CLEW_SOLVER_SMT_Z3_BACKEND_H_
#define CLEW_SOLVER_SMT_Z3_BACKEND_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "constraints/expr_eval.h"
#include "constraints/trace.h"
#include "constraints/verdict.h"
#include "solver/smt/order_formula.h"

namespace clew::solver {

struct Z3Options {
  EncodingKind encoding = EncodingKind::kReadFrom;
  double seconds = 60;
  uint64_t memory_bytes_max = uint64_t{4} << 30;
  // Leave values, conditions and final memory out: order and read-from only.
  bool order_only = false;
  // Which certain orders to use; by default what the encoding stands for.
  constraints::OrderSources sources = SourcesOf(EncodingKind::kReadFrom);
};

struct Z3Answer {
  constraints::Verdict verdict = constraints::Verdict::kUnknown;
  constraints::AccessOrder order;  // for kWitness
  // For kWitness: values of the unknowns, by variable.
  std::vector<std::pair<constraints::VarId, uint64_t>> unknowns;
  // For kUnsat: groups of conditions and demands that conflict, given the
  // certain order; empty if that order alone has no solution.
  std::vector<constraints::GroupId> conflicting;
  std::string why;  // for kUnknown
  uint64_t clauses = 0;
  uint64_t cycles = 0;  // conflicts found by the order theory
  double build_seconds = 0;
  double seconds = 0;
};

// Decides the trace with Z3, in this process: time is limited roughly, memory
// not at all. Called by SolveWithZ3 in a child.
Z3Answer SolveWithZ3InProcess(const constraints::ConstraintTrace& trace,
                              const Z3Options& options);

// Does the same in a child process that is killed when its time is over and
// cannot take more memory than allowed, because Z3 keeps to neither by itself.
// The caller should have one thread. Fails with kSystem if no child can be
// made, and with kCorruptInput if the child's answer is cut short.
[[nodiscard]] Result<Z3Answer> SolveWithZ3(
    const constraints::ConstraintTrace& trace, const Z3Options& options);

// Returns what a witness of `options.encoding` is checked against: the trace
// without what that encoding does not use, which the witness need not respect.
constraints::ConstraintTrace WhatEncodingUses(
    const constraints::ConstraintTrace& trace, const Z3Options& options);

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SMT_Z3_BACKEND_H_
