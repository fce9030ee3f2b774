#ifndef CLEW_RECORDER_SELFTEST_KNOWN_LOOP_H_
#define CLEW_RECORDER_SELFTEST_KNOWN_LOOP_H_

#include <string>

#include "common/result.h"
#include "common/units.h"
#include "recorder/perf/kernel.h"

namespace clew::recorder {

// Records a loop of the calling thread with PT, by the way that `clew record
// --source perf` goes, decodes it, and counts how often the loop went round.
// Says what was found. kUnsupported: it is not what was executed. `sys` and
// `proc` are where those file systems are mounted.
[[nodiscard]] Result<std::string> DecodeKnownLoop(perf::PerfKernel& kernel,
                                                  const std::string& sys,
                                                  const std::string& proc);

// How often `thread` executed the instruction at `ip`, by the trace in the file
// `perf_data`, with this host's files as code. kUnsupported: its trace has gaps
// that are not of code outside of files.
[[nodiscard]] Result<uint64_t> CountExecutions(const std::string& perf_data,
                                               Tid thread, TraceeAddr ip);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_SELFTEST_KNOWN_LOOP_H_
