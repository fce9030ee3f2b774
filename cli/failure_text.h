#ifndef CLEW_CLI_FAILURE_TEXT_H_
#define CLEW_CLI_FAILURE_TEXT_H_

#include <string>

#include "cli/report.h"
#include "common/inputs.h"

// How a run ended, in the same words in every subcommand.

namespace clew::cli {

// "signal 6 (SIGABRT) in thread 4711 at 0x401000", "exit status 3", "hang",
// "time limit". A run that did not fail has its exit status, too.
std::string FailureText(const Failure& failure);

// For a line about the run: "failed: hang", "did not fail (exit status 0)".
std::string OutcomeText(const Failure& failure);

// With all that is known: "signal ... at 0x401000, address 0x0", "exit status 3
// by thread 4711", what a hang is, "none; exit status 0".
std::string FailureDetails(const Failure& failure);

// {"kind", "signal", "exit_status", "thread", "ip", "addr"}: the kind is that
// of ToString, addresses are texts like "0x401000".
Json FailureJson(const Failure& failure);

}  // namespace clew::cli

#endif  // CLEW_CLI_FAILURE_TEXT_H_
