#ifndef CLEW_COLLECTOR_SERVICE_ID_PREFIX_H_
#define CLEW_COLLECTOR_SERVICE_ID_PREFIX_H_

#include <string_view>

#include "common/result.h"

namespace clew::collector {

// Whether a stranger's text is the first digits of an id of SHA-256: 4 to 64
// in lower-case hexadecimal. kInvalidArgument: it is not; `what` has such ids
// ("bundle"), and `list` is the command that prints them.
[[nodiscard]] Status CheckIdPrefix(std::string_view prefix_untrusted,
                                   std::string_view what,
                                   std::string_view list);

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_SERVICE_ID_PREFIX_H_
