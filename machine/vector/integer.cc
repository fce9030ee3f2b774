#include "machine/vector/integer.h"

#include "machine/vector/host_op.h"

namespace clew::machine {

CLEW_VECTOR_INTEGER_OPS(CLEW_HOST_INTEGER_OP)

namespace mmx {

CLEW_VECTOR_MMX_OPS(CLEW_HOST_MMX_OP)
CLEW_VECTOR_MMX_LOW_OPS(CLEW_HOST_MMX_OP)

}  // namespace mmx

}  // namespace clew::machine
