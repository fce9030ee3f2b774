#ifndef CLEW_TESTS_SUPPORT_RANDOM_TRACES_H_
#define CLEW_TESTS_SUPPORT_RANDOM_TRACES_H_

#include <cstdint>

#include "tests/support/toy_programs.h"

namespace clew::test {

// A few accesses of two or three threads to eight bytes, of sizes 1 to 8 that
// overlap in every way, with values that depend on each other, and evidence
// from one random interleaving. With `has_unknown`, the first byte of memory is
// an unknown: variable 0, of width 8.
ToyTrace MakeRandomTrace(uint64_t seed, bool has_unknown);

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_RANDOM_TRACES_H_
