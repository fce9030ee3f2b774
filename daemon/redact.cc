#include "daemon/redact.h"

#include "common/file.h"
#include "recorder/redaction.h"
#include "recorder/redaction_rules.h"

namespace clew::daemon {
namespace {

Result<recorder::RedactionRules> ReadRules(const std::string& path) {
  if (path.empty()) {
    return recorder::RedactionRules::Parse(kBuiltInRules, "built-in rules");
  }
  CLEW_ASSIGN_OR_RETURN(file, MappedFile::Open(path));
  return recorder::RedactionRules::Parse(
      {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()},
      path);
}

}  // namespace

Status RedactBundle(const std::string& folder, const std::string& rules) {
  CLEW_ASSIGN_OR_RETURN(parsed, ReadRules(rules));
  CLEW_ASSIGN_OR_RETURN(lines,
                        recorder::Redact(PosixFileSystem(), folder, parsed));
  (void)lines;  // the manifest has them
  return {};
}

Status CheckRules(const std::string& rules) {
  CLEW_ASSIGN_OR_RETURN(parsed, ReadRules(rules));
  (void)parsed;
  return {};
}

}  // namespace clew::daemon
