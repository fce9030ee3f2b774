#ifndef CLEW_TESTS_SUPPORT_GUEST_STRADDLE_H_
#define CLEW_TESTS_SUPPORT_GUEST_STRADDLE_H_

#include <cstdint>

namespace clew::test {

// As those of tests/support/guest_programs.h. Threads read an unlocked counter
// together with the constant behind it, in the next aligned word.
extern "C" void GuestStraddle(uint64_t rounds);

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_GUEST_STRADDLE_H_
