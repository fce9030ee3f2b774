#ifndef CLEW_SOLVER_SMT_Z3_ENCODINGS_H_
#define CLEW_SOLVER_SMT_Z3_ENCODINGS_H_

#include <cstdint>
#include <vector>

#include "common/os/deadline.h"
#include "solver/smt/z3_backend.h"
#include "solver/smt/z3_problem.h"

// How the order of accesses is put to Z3: two ways to finish one Z3Problem.
//
// x is 0. A: x = 1 (W). B: r = x (R), with evidence that r == 1. The read
// returns W or the initial value (I):
//
//     integers   (V(R) == 1 and O_W < O_R) or (V(R) == 0 and O_R < O_W)
//     read-from  b_W or b_I;  b_W => V(R) == 1;  b_I => V(R) == 0;
//                the theory knows that b_W is the edge W -> R, b_I R -> W
//
// Both need V(R) == 1 of the evidence and find O_W < O_R, or b_W. With integers
// Z3's arithmetic looks for an order of all accesses at once. With read-from it
// decides Booleans alone, and ReadFromTheory answers each with "still an order"
// or with the few Booleans that close a cycle; so what Z3 learns speaks of
// reads and writes, and the order is read off the graph at the end.

namespace clew::solver {

// Gives each access an integer and compares them as options.encoding does
// (kClap, kCore, kTime). Returns kUnknown if the deadline passes first.
Z3Answer SolveByIntegers(Z3Problem& problem, const Deadline& deadline);

// Solves with kReadFrom. `guess` lists all accesses in a possible order; Z3
// tries what agrees with it first.
Z3Answer SolveByReadFrom(Z3Problem& problem,
                         const std::vector<uint32_t>& guess);

}  // namespace clew::solver

#endif  // CLEW_SOLVER_SMT_Z3_ENCODINGS_H_
