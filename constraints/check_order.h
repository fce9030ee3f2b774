#ifndef CLEW_CONSTRAINTS_CHECK_ORDER_H_
#define CLEW_CONSTRAINTS_CHECK_ORDER_H_

#include <cstdint>

#include "common/result.h"
#include "constraints/expr_eval.h"
#include "constraints/trace.h"

namespace clew::constraints {

// Checks an order independently: carries out the accesses one after another in
// the claimed order on a memory of bytes. Shares with the engines the trace and
// what its operators mean (ApplyOp), and nothing else. Fails with
// kInvalidArgument, which says which access or evidence does not agree.
//
// `unknowns` gives the values of variables that no access reads.
[[nodiscard]] Status CheckOrder(const ConstraintTrace& trace,
                                const AccessOrder& order,
                                const Assignment& unknowns = {});

}  // namespace clew::constraints

#endif  // CLEW_CONSTRAINTS_CHECK_ORDER_H_
