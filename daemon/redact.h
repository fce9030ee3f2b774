#ifndef CLEW_DAEMON_REDACT_H_
#define CLEW_DAEMON_REDACT_H_

#include <string>

#include "common/result.h"
#include "daemon/config.h"

namespace clew::daemon {

// What is taken out where `redaction` names no file: values of variables of the
// environment whose names say that they are secrets.
inline constexpr const char* kBuiltInRules =
    "environment drop "
    "*TOKEN*,*SECRET*,*PASSWORD*,*PASSWD*,*_KEY,*CREDENTIAL*\n";

// Redacts a bundle by the rules in the file `rules`, or kBuiltInRules where
// that is empty. Errors as of recorder::Redact; rules that are not valid are
// kInvalidArgument. Rules that cannot be applied leave the bundle as it was.
[[nodiscard]] Status RedactBundle(const std::string& folder,
                                  const std::string& rules);

// ReadConfig, and a look at the rules that it names.
[[nodiscard]] Result<Config> ReadCheckedConfig(const std::string& path);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_REDACT_H_
