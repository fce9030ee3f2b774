#include "daemon/redact.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "bundle/bundle.h"
#include "bundle/manifest/manifest_edit.h"
#include "common/file.h"
#include "daemon/journal.h"
#include "decoder/assertion.h"
#include "recorder/redaction.h"
#include "recorder/redaction_rules.h"

namespace clew::daemon {
namespace {

constexpr size_t kRulesBytesMax = size_t{1} << 20;

Result<std::string> ReadInput() {
  std::string text;
  std::array<char, 4096> bytes = {};
  while (text.size() <= kRulesBytesMax) {
    const ssize_t count = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count == 0) {
      return text;
    }
    if (count < 0 && errno != EINTR) {
      return SystemError(errno, "cannot read rules from standard input");
    }
    text.append(bytes.data(), static_cast<size_t>(std::max<ssize_t>(count, 0)));
  }
  return InvalidArgument("redaction rules of more than {} bytes",
                         kRulesBytesMax);
}

Result<recorder::RedactionRules> ReadRules(const std::string& path) {
  if (path.empty()) {
    return recorder::RedactionRules::Parse(kBuiltInRules, "built-in rules");
  }
  if (path == "-") {
    CLEW_ASSIGN_OR_RETURN(text, ReadInput());
    return recorder::RedactionRules::Parse(text, "redaction rules");
  }
  CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(path));
  return recorder::RedactionRules::Parse(
      {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()},
      path);
}

// The text of a failed assertion is in memory that rules may drop, and may be
// sent. Kept before anything is dropped, so a second call has it, too. What
// cannot be read has none, and is for Redact to refuse.
Status KeepAssertion(const std::string& folder) {
  const auto bundle = bundle::Bundle::Open(folder);
  if (!bundle || !bundle->manifest().assertion.empty()) {
    return {};
  }
  const auto found = decoder::FindAssertion(*bundle);
  if (!found || !*found) {
    return {};
  }
  return bundle::EditManifest(PosixFileSystem(), folder,
                              {.assertion = ToString(**found)});
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
    return {};  // not even a core dump that nobody can read is in the way
  }
  if (parsed.has_core_rules()) {
    CLEW_RETURN_IF_ERROR(KeepAssertion(folder));
  }
  CLEW_ASSIGN_OR_RETURN(lines,
                        recorder::Redact(PosixFileSystem(), folder, parsed));
  (void)lines;  // the manifest has them
  return {};
}

Result<Config> ReadCheckedConfig(const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(config, ReadConfig(path));
  if (!config.redaction.empty()) {
    CLEW_ASSIGN_OR_RETURN(rules, ReadRules(config.redaction));
    (void)rules;  // read again for each bundle
  }
  return config;
}

}  // namespace clew::daemon
