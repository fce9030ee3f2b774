#ifndef CLEW_RECORDER_BPF_SYSCALL_RULES_H_
#define CLEW_RECORDER_BPF_SYSCALL_RULES_H_

#include <cstdint>

#include "recorder/bpf/raw_event.h"

namespace clew::recorder::bpf {

// What the kernel's side is told about the call `number`: the row of
// common/linux/syscall_table.h. `known` is 0 for a call whose effects the table
// does not have.
RawRule RuleFor(uint64_t number);

}  // namespace clew::recorder::bpf

#endif  // CLEW_RECORDER_BPF_SYSCALL_RULES_H_
