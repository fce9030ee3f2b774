#ifndef CLEW_RECORDER_REDACTION_REDACTION_H_
#define CLEW_RECORDER_REDACTION_REDACTION_H_

#include <string>
#include <vector>

#include "common/os/file.h"
#include "common/result.h"
#include "recorder/redaction_rules.h"

namespace clew::recorder {

// Most copies of dropped values that are overwritten in one bundle.
inline constexpr size_t kRedactionCopiesMax = 1'000'000;
// Shorter values are overwritten where the kernel put them. Elsewhere they are
// looked for with their name before them (NAME=value) where that makes so many
// bytes, else not at all: chance would find them.
inline constexpr size_t kSearchedBytesMin = 8;

// Takes out of the bundle in `folder` what `rules` say, and notes in the
// manifest what was done; docs/format/redaction.md says what that is and what
// it costs. Returns the lines noted, one a rule that found something; none if
// there was nothing to take out.
//
// Whole or repeatable: each file is the old or the new one, the manifest comes
// last, and after an error or a crash the next call goes on. So a bundle may be
// handed on only after this succeeded.
//
// kInvalidArgument: the bundle is solved already. kUnsupported: a rule cannot
// be applied (the message says which and why); nothing was changed then.
[[nodiscard]] Result<std::vector<std::string>> Redact(
    FileSystem& files, const std::string& folder, const RedactionRules& rules);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_REDACTION_REDACTION_H_
