#ifndef CLEW_DAEMON_REDACT_REDACT_H_
#define CLEW_DAEMON_REDACT_REDACT_H_

#include <string>

#include "common/result.h"

namespace clew::daemon {

// Redacts a bundle by the rules in the file `rules`, or kBuiltInRules where
// that is empty. Errors as of recorder::Redact; rules that are not valid are
// kInvalidArgument. Rules that cannot be applied leave the bundle as it was.
[[nodiscard]] Status RedactBundle(const std::string& folder,
                                  const std::string& rules);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_REDACT_REDACT_H_
