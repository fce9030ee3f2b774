#ifndef CLEW_SOLVER_GUESS_H_
#define CLEW_SOLVER_GUESS_H_

#include <cstdint>
#include <vector>

#include "constraints/trace.h"
#include "solver/must_order.h"

namespace clew::solver {

// Where each access (by id) lies in the time-merged guess: accesses of a
// thread that share an interval are spread evenly over it; so without times
// all threads advance in proportion to their lengths.
std::vector<double> GuessKeys(const constraints::ConstraintTrace& trace);

// All accesses (by id) in an order that respects what is certain and otherwise
// follows the keys.
std::vector<uint32_t> GuessedOrder(const MustOrder& order,
                                   const std::vector<double>& keys);

}  // namespace clew::solver

#endif  // CLEW_SOLVER_GUESS_H_
