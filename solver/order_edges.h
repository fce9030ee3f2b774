#ifndef CLEW_SOLVER_ORDER_EDGES_H_
#define CLEW_SOLVER_ORDER_EDGES_H_

#include <vector>

#include "constraints/trace.h"
#include "solver/search/edges.h"
#include "symbolic/trace_builder.h"

namespace clew::solver {

// Returns what an order of a trace's accesses says of the program's
// instructions: of every two accesses of one word that belong to different
// threads and conflict, which comes first; but for those that follow from
// others.
std::vector<OrderEdge> EdgesOf(const symbolic::BuiltTrace& built,
                               const constraints::AccessOrder& order);

}  // namespace clew::solver

#endif  // CLEW_SOLVER_ORDER_EDGES_H_
