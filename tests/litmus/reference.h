#ifndef CLEW_TESTS_LITMUS_REFERENCE_H_
#define CLEW_TESTS_LITMUS_REFERENCE_H_

#include <set>

#include "common/schedule.h"
#include "tests/litmus/litmus_program.h"

namespace clew::test {

// Returns all outcomes of a program, from the definition of the model:
//
//   A state is memory, and for each thread its position, registers and a list
//   of stores that wait, in the order of the program. A step is one of
//   - a thread's load: each byte from its youngest store that waits, or else
//     from memory;
//   - a thread's store: it is appended to the list;
//   - what is one step (XCHG, LOCK): only if nothing of the thread waits, reads
//     and writes memory; a fence: only if nothing waits;
//   - a store that waits goes to memory: tso: the first of the list; pso: any
//     before which none waits that lies in one of its aligned 8 bytes.
//   An instruction that reads and writes without LOCK is two steps, a load and
//   a store.
//   sc: no store waits, and every instruction is one step.
//
// Shares no code with the product, and nothing is left out to save states.
std::set<LitmusOutcome> AllOutcomes(const LitmusProgram& program,
                                    MemoryModelKind model);

}  // namespace clew::test

#endif  // CLEW_TESTS_LITMUS_REFERENCE_H_
