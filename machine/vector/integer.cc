#include "machine/vector/integer.h"

#include "machine/vector/host_op.h"

namespace clew::machine {

CLEW_VECTOR_INTEGER_OPS(CLEW_HOST_INTEGER_OP)

}  // namespace clew::machine
