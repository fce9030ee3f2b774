#ifndef CLEW_TESTS_FIDELITY_RUN_CASE_H_
#define CLEW_TESTS_FIDELITY_RUN_CASE_H_

#include <string>
#include <vector>

#include "tests/fidelity/outcome.h"

namespace clew::fidelity {

// The programs of tests/fidelity/programs, sorted.
std::vector<std::string> ProgramNames();

// A program runs natively first. With another exit status than 0 it is not
// correct here, or with this one not able to run here (no privilege, no such
// call in this kernel): it has said what is missing.
inline constexpr int kNotHere = 77;
Ran RunNatively(const std::string& program);

// Then it is recorded with these options of `record`, solved and replayed, each
// command for at most `limit_s` seconds. What it leaves running is ended after
// each.
Outcome Follow(const std::vector<std::string>& record_options,
               const std::string& program, const Ran& native, int limit_s);

}  // namespace clew::fidelity

#endif  // CLEW_TESTS_FIDELITY_RUN_CASE_H_
