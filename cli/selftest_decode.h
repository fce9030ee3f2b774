#ifndef CLEW_CLI_SELFTEST_DECODE_H_
#define CLEW_CLI_SELFTEST_DECODE_H_

#include <string>

#include "common/result.h"
#include "common/units.h"
#include "recorder/perf/kernel.h"

namespace clew::cli {

// Records a loop of the calling thread with PT, by the way that `clew record
// --source perf` goes, decodes it, and counts how often the loop went round.
// Says what was found. kUnsupported: it is not what was executed. `sys` and
// `proc` are where those file systems are mounted.
[[nodiscard]] Result<std::string> DecodeKnownLoop(
    recorder::perf::PerfKernel& kernel, const std::string& sys,
    const std::string& proc);

// How often `thread` executed the instruction at `ip`, by the trace in the file
// `perf_data`, with this host's files as code. kUnsupported: its trace has gaps
// that are not of code outside of files.
[[nodiscard]] Result<uint64_t> CountExecutions(const std::string& perf_data,
                                               Tid thread, TraceeAddr ip);

}  // namespace clew::cli

#endif  // CLEW_CLI_SELFTEST_DECODE_H_
