#include "daemon/redact/redact.h"

#include "bundle/bundle.h"
#include "bundle/manifest/manifest_edit.h"
#include "common/os/file.h"
#include "daemon/config/rules.h"
#include "daemon/redact/take_journal.h"
#include "decoder/assertion.h"
#include "recorder/redaction/redaction.h"

namespace clew::daemon {
namespace {

// The text of a failed assertion is in memory that rules may drop, and may be
// sent. Kept before anything is dropped, so a second call has it, too. What
// cannot be read has none, and is for Redact to refuse.
Status KeepAssertion(const std::string& folder) {
  const auto bundle = bundle::Bundle::Open(folder);
  if (!bundle || !bundle->manifest().assertion.empty()) {
    return {};
  }
  const auto found = decoder::FindAssertion(*bundle);
  const auto assertion = found ? *found : std::nullopt;
  return assertion ? bundle::EditManifest(PosixFileSystem(), folder,
                                          {.assertion = ToString(*assertion)})
                   : Status();
}

bool TakeNothingOut(const recorder::RedactionRules& rules) {
  return !rules.has_core_rules() && !rules.has_environment_rules() &&
         !rules.has_argument_rules() && !rules.drops_start() &&
         !rules.drops_inputs();
}

}  // namespace

Status RedactBundle(const std::string& folder, const std::string& rules) {
  CLEW_RETURN_IF_ERROR(TakeJournal(PosixFileSystem(), folder));
  CLEW_ASSIGN_OR_RETURN(parsed, ReadRules(rules));
  if (TakeNothingOut(parsed)) {
    return {};  // not even an unreadable core dump is in the way
  }
  if (parsed.has_core_rules()) {
    CLEW_RETURN_IF_ERROR(KeepAssertion(folder));
  }
  CLEW_ASSIGN_OR_RETURN(lines,
                        recorder::Redact(PosixFileSystem(), folder, parsed));
  (void)lines;  // the manifest has them
  return {};
}

}  // namespace clew::daemon
