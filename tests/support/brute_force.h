#ifndef CLEW_TESTS_SUPPORT_BRUTE_FORCE_H_
#define CLEW_TESTS_SUPPORT_BRUTE_FORCE_H_

#include <cstdint>
#include <optional>

#include "constraints/expr_eval.h"
#include "constraints/trace.h"

namespace clew::test {

// Whether any interleaving satisfies the trace, by trying all of them; nullopt
// if that takes more than `steps_max` steps. Prunes only where evidence is
// violated already. `unknowns` gives the values that no access reads.
std::optional<bool> HasWitness(const constraints::ConstraintTrace& trace,
                               uint64_t steps_max,
                               const constraints::Assignment& unknowns = {});

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_BRUTE_FORCE_H_
