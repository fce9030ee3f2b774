#ifndef CLEW_COMMON_LINUX_RAW_RULES_H_
#define CLEW_COMMON_LINUX_RAW_RULES_H_

#include <cstdint>
#include <vector>

#include "common/linux/raw_rule.h"

namespace clew {

// The row of syscall_table.h of the call `number`. `known` is 0 for a call
// whose effects the table does not have.
RawRule RuleFor(uint64_t number);

// The rows of request_table.h, by ascending number and request. Of those whose
// extent neither is fixed nor follows from the result, the bytes are
// CLEW_RAW_REQUEST_UNKNOWN.
std::vector<RawRequestRule> RequestRules();

}  // namespace clew

#endif  // CLEW_COMMON_LINUX_RAW_RULES_H_
