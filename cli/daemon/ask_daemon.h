#ifndef CLEW_CLI_DAEMON_ASK_DAEMON_H_
#define CLEW_CLI_DAEMON_ASK_DAEMON_H_

#include <string>

#include "cli/report.h"
#include "common/result.h"
#include "daemon/control/protocol.h"

namespace clew::cli {

// Which clewd is asked, and how its reply is shown.
struct AskOptions {
  std::string root = "/";  // its files are below
  bool json = false;       // the reply as it is
};

// Asks clewd and waits at most 10 s. Fails with kSystem if it does not answer.
[[nodiscard]] Result<Json> AskDaemon(const AskOptions& options,
                                     const daemon::Request& request);
// Does the same and prints the reply with `show` or as JSON. Returns the exit
// code.
[[nodiscard]] int AskDaemon(const AskOptions& options,
                            const daemon::Request& request,
                            void (*show)(const Json&));

}  // namespace clew::cli

#endif  // CLEW_CLI_DAEMON_ASK_DAEMON_H_
