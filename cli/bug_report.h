#ifndef CLEW_CLI_BUG_REPORT_H_
#define CLEW_CLI_BUG_REPORT_H_

#include "cli/report.h"
#include "common/result.h"
#include "follower/bundle/bundle_recording.h"
#include "solver/solve.h"

namespace clew::cli {

// What a report has at most of the thread that it is about.
inline constexpr size_t kReportedInputsMax = 300;  // the last ones
inline constexpr size_t kReportedBlocksMax = 16;   // the last ones

// Returns a small extract of a recording with the place at which clew's model
// differs, to be sent by a user (docs/design/solve.md, "A report of a bug").
// It has no memory, no bytes that calls wrote or were given, no strings of the
// program but names of functions and the last part of file names, neither its
// command line nor its environment; of its code the last two blocks alone.
// Fails as reading the bundle's inputs and trace does.
[[nodiscard]] Result<Json> MakeBugReport(
    const follower::BundleRecording& recording,
    const solver::SolveReport& solved);

}  // namespace clew::cli

#endif  // CLEW_CLI_BUG_REPORT_H_
