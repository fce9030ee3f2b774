#ifndef CLEW_TESTS_SUPPORT_BRUTE_FORCE_H_
#define CLEW_TESTS_SUPPORT_BRUTE_FORCE_H_

#include <cstdint>
#include <optional>

#include "symbolic/constraints/trace.h"

namespace clew::testing {

// Whether any interleaving satisfies the trace, by trying all of them; nullopt
// if that takes more than `steps_max` steps. Prunes only where evidence is
// violated already.
std::optional<bool> HasWitness(const constraints::ConstraintTrace& trace,
                               uint64_t steps_max);

}  // namespace clew::testing

#endif  // CLEW_TESTS_SUPPORT_BRUTE_FORCE_H_
