#ifndef CLEW_CONSTRAINTS_GUESS_KEYS_H_
#define CLEW_CONSTRAINTS_GUESS_KEYS_H_

#include <cstdint>
#include <vector>

#include "constraints/must_order.h"
#include "constraints/trace.h"

namespace clew::constraints {

// Returns where each access (by id) lies in the time-merged guess: accesses of
// a thread that share an interval are spread evenly over it; so without times
// all threads advance in proportion to their lengths.
std::vector<double> GuessKeys(const ConstraintTrace& trace);

// Returns all accesses (by id) in an order that respects what is certain and
// otherwise follows the keys.
std::vector<uint32_t> GuessedOrder(const MustOrder& order,
                                   const std::vector<double>& keys);

}  // namespace clew::constraints

#endif  // CLEW_CONSTRAINTS_GUESS_KEYS_H_
