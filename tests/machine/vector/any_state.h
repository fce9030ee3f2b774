#ifndef CLEW_TESTS_MACHINE_VECTOR_ANY_STATE_H_
#define CLEW_TESTS_MACHINE_VECTOR_ANY_STATE_H_

#include "common/digest.h"
#include "machine/vector/vec_op.h"
#include "tests/machine/oracle.h"

// Random states, rich in the values at which something changes.

namespace clew::machine {

inline constexpr uint64_t kMemOperandAddr = kDataAt + 1024;

// Boundary bytes, floats and doubles (zeros, denormals, infinities, NaNs of
// both kinds, the limits of integers), small values, or any bits.
Vec128 AnyVec(Random& random);
Float80 AnyFloat80(Random& random);
// Any rounding and precision, stacks from empty to full; all exceptions are
// masked.
X87 AnyX87(Random& random);

// All registers but the x87, and data. rsi points to a memory operand aligned
// to 16, rdi to another that need not be, both with 512 bytes of data after
// them; all exceptions are masked.
State AnyState(Random& random);

}  // namespace clew::machine

#endif  // CLEW_TESTS_MACHINE_VECTOR_ANY_STATE_H_
