#ifndef CLEW_RECORDER_BPF_SYSCALL_RULES_H_
#define CLEW_RECORDER_BPF_SYSCALL_RULES_H_

#include <cstdint>
#include <vector>

#include "recorder/bpf/raw_event.h"

namespace clew::recorder::bpf {

// What the kernel's side is told about the call `number`: the row of
// common/linux/syscall_table.h. `known` is 0 for a call whose effects the table
// does not have.
RawRule RuleFor(uint64_t number);

// What it is told about requests: the rows of common/linux/request_table.h. It
// does not follow those whose extent is not fixed.
struct RequestRule {
  RawRequest request;
  uint32_t bytes = 0;  // or CLEW_RAW_REQUEST_UNKNOWN
};
std::vector<RequestRule> RequestRules();

}  // namespace clew::recorder::bpf

#endif  // CLEW_RECORDER_BPF_SYSCALL_RULES_H_
