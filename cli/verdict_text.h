#ifndef CLEW_CLI_VERDICT_TEXT_H_
#define CLEW_CLI_VERDICT_TEXT_H_

#include <string>

#include "solver/solve.h"

// What a search found, in words.

namespace clew::cli {

// "witness", "unsat", "unknown", "model-differs".
const char* VerdictName(const solver::SolveReport& report);

// "after `mremap`, at main (grow.c:9), thread 12, instruction 107399: ...";
// `place` is what its instruction is called.
std::string Describe(const solver::ModelDifference& difference,
                     const std::string& place);

}  // namespace clew::cli

#endif  // CLEW_CLI_VERDICT_TEXT_H_
