#ifndef CLEW_CLI_DAEMON_DAEMON_STATUS_H_
#define CLEW_CLI_DAEMON_DAEMON_STATUS_H_

#include "cli/report.h"

namespace clew::cli {

// clewd's replies (daemon/status.h) as text for people. What is missing in them
// is shown as 0 or nothing: clewd may be of another version.
void PrintDaemonStatus(const Json& status);
void PrintDaemonUnits(const Json& units);
void PrintDaemonRetry(const Json& reply);
void PrintDaemonSnapshot(const Json& reply);

}  // namespace clew::cli

#endif  // CLEW_CLI_DAEMON_DAEMON_STATUS_H_
