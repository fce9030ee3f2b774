#ifndef CLEW_COLLECTOR_CATALOGUE_CHILD_REPORTS_H_
#define CLEW_COLLECTOR_CATALOGUE_CHILD_REPORTS_H_

#include <string>
#include <string_view>

#include "collector/catalogue/catalogue.h"
#include "common/result.h"

namespace clew::collector {

// What children say, who may have been taken over: checked here, cut by the
// catalogue.

// Of `clew backtrace --json`. kCorruptInput: no JSON document with a signature.
[[nodiscard]] Result<Analysis> ParseBacktraces(std::string_view json_untrusted);

// Of `clew solve --json` with this exit status. Whether there is a schedule is
// not looked at. kCorruptInput: status and document do not belong together, or
// the status is that of an error.
[[nodiscard]] Result<SolveOutcome> ParseSolveReport(
    std::string_view json_untrusted, int exit_status);

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_CATALOGUE_CHILD_REPORTS_H_
