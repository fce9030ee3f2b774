#ifndef CLEW_CLI_DAEMON_REPORT_HOST_H_
#define CLEW_CLI_DAEMON_REPORT_HOST_H_

#include "cli/collector/collector_options.h"
#include "cli/daemon/ask_daemon.h"

namespace clew::cli {

// Asks clewd how it does and tells the collector. Returns the exit code.
[[nodiscard]] int ReportHost(const AskOptions& ask,
                             const CollectorOptions& collector);

}  // namespace clew::cli

#endif  // CLEW_CLI_DAEMON_REPORT_HOST_H_
