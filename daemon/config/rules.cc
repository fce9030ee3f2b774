#include "daemon/config/rules.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "common/os/file.h"

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

}  // namespace

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

Result<Config> ReadCheckedConfig(const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(config, ReadConfig(path));
  if (!config.redaction.empty()) {
    CLEW_ASSIGN_OR_RETURN(rules, ReadRules(config.redaction));
    (void)rules;  // read again for each bundle
  }
  return config;
}

}  // namespace clew::daemon
