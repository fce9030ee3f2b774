#ifndef CLEW_TESTS_LITMUS_ON_MACHINE_H_
#define CLEW_TESTS_LITMUS_ON_MACHINE_H_

#include <set>

#include "common/schedule.h"
#include "tests/litmus/litmus_program.h"

namespace clew::test {

// Returns the outcomes that the product finds: the program is translated to
// x86-64, recorded as having run along its only path with nothing known of
// time, and every order that the search's executor permits is taken; the
// schedule of each end is then run on a process of its own, whose registers and
// memory are the outcome.
std::set<LitmusOutcome> OutcomesOnMachine(const LitmusProgram& program,
                                          MemoryModelKind model);

}  // namespace clew::test

#endif  // CLEW_TESTS_LITMUS_ON_MACHINE_H_
