#ifndef CLEW_BUNDLE_CORE_DUMP_DUMP_FAILURE_H_
#define CLEW_BUNDLE_CORE_DUMP_DUMP_FAILURE_H_

#include <cstdint>

#include "bundle/core_dump/core_dump.h"
#include "common/inputs.h"

namespace clew::bundle {

// Returns the signal that the dump was made for; 0 if it was made of a process
// that went on, as by gcore.
int32_t SignalOf(const CoreDump& core);

// Returns how the process ended, by its core dump: kNone where it was not made
// by a signal that dumps core.
Failure FailureOf(const CoreDump& core);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_CORE_DUMP_DUMP_FAILURE_H_
