#ifndef CLEW_RECORDER_SOFTWARE_ANSWER_H_
#define CLEW_RECORDER_SOFTWARE_ANSWER_H_

#include <cstddef>
#include <span>
#include <vector>

#include "common/result.h"
#include "recorder/software/record.h"

namespace clew::recorder {

// What Record has returned, as bytes that another process of the same program
// reads: every field, in an order that is nobody else's business.
std::vector<std::byte> FormatAnswer(const Result<RecordOutcome>& answer);

// The reverse of FormatAnswer. kSystem: the bytes are not what it returns, with
// where they are not.
[[nodiscard]] Result<RecordOutcome> ParseAnswer(
    std::span<const std::byte> bytes_untrusted);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_SOFTWARE_ANSWER_H_
