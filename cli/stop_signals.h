#ifndef CLEW_CLI_STOP_SIGNALS_H_
#define CLEW_CLI_STOP_SIGNALS_H_

#include <csignal>

namespace clew::cli {

// From here on SIGINT and SIGTERM end a recording, and not this process.
// Returns where it is noted that one came: not 0.
const volatile std::sig_atomic_t& CatchStopSignals();

}  // namespace clew::cli

#endif  // CLEW_CLI_STOP_SIGNALS_H_
