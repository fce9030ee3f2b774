#ifndef CLEW_DAEMON_SPOOL_JOURNAL_H_
#define CLEW_DAEMON_SPOOL_JOURNAL_H_

#include <string>
#include <string_view>
#include <vector>

#include "common/bundle_facts.h"
#include "common/result.h"

namespace clew::daemon {

// The journal's lines about a failure: journalctl tells them, as a child of
// clewd; a confined child (clewd-redact) reads what it wrote, which anybody may
// have logged, and puts it into the manifest.

inline constexpr size_t kJournalLinesMax = 200;
inline constexpr size_t kJournalMessageBytesMax = 1024;

// What asks for them, newest first; `journalctl` is its path.
std::vector<std::string> JournalCommand(const std::string& journalctl,
                                        const Trigger& trigger);
// The file of a bundle in which they wait for the manifest.
std::string JournalPath(const std::string& folder);
// Before why there are none; no line of JSON begins so.
inline constexpr char kNoJournal = '!';
// Writes that file: `output` of that command, or why there is none.
[[nodiscard]] Status KeepJournal(const std::string& folder,
                                 std::string_view output, std::string_view why);
// Nothing was asked for: what somebody else left under that name goes.
void DropJournal(const std::string& folder);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_SPOOL_JOURNAL_H_
