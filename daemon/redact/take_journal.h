#ifndef CLEW_DAEMON_REDACT_TAKE_JOURNAL_H_
#define CLEW_DAEMON_REDACT_TAKE_JOURNAL_H_

#include <string>

#include "common/os/file.h"
#include "common/result.h"

namespace clew::daemon {

// Moves what KeepJournal wrote into the manifest of the bundle and removes its
// file; does nothing if there is no such file, so it may be repeated. Lines
// that are not of `journalctl -o json` are left out.
[[nodiscard]] Status TakeJournal(FileSystem& files, const std::string& folder);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_REDACT_TAKE_JOURNAL_H_
