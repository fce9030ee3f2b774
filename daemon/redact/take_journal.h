#ifndef CLEW_DAEMON_REDACT_TAKE_JOURNAL_H_
#define CLEW_DAEMON_REDACT_TAKE_JOURNAL_H_

#include <string>

#include "common/file.h"
#include "common/result.h"

namespace clew::daemon {

// Moves what KeepJournal wrote into the manifest of the bundle; the file is
// gone then. Without it nothing is done. Repeatable. What is no line of
// `journalctl -o json` is left out.
[[nodiscard]] Status TakeJournal(FileSystem& files, const std::string& folder);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_REDACT_TAKE_JOURNAL_H_
