#ifndef CLEW_RECORDER_PERF_RECORD_H_
#define CLEW_RECORDER_PERF_RECORD_H_

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/fail_on.h"
#include "common/os/file.h"
#include "common/result.h"
#include "recorder/images/perf_capture.h"
#include "recorder/input_tap.h"
#include "recorder/perf/event_config.h"
#include "recorder/perf/kernel.h"
#include "recorder/perf_bundle.h"
#include "recorder/perf_recording.h"
#include "recorder/start_tap.h"

namespace clew::recorder {

// A recording with perf_event, of one of: command, process, unit, cgroup, the
// whole host.
struct PerfRecordOptions {
  std::vector<std::string> command;  // to launch; argv
  int32_t process = 0;               // to attach to, with all its threads
  std::string unit;                  // of systemd
  std::string cgroup;                // its folder
  bool whole_host = false;

  std::optional<perf::PtOptions> pt;  // absent: sideband alone
  bool snapshot = false;              // what the rings hold at the end
  uint64_t data_bytes = 512 << 10;    // of sideband, per CPU
  // A launched program that runs longer has hung, and is ended by SIGABRT; of
  // anything else the recording ends. 0: no limit.
  uint32_t seconds = 0;
  FailOn fail_on;  // of a launched program
  // What comes in from outside, of a command or process alone, in full. May be
  // null. Must outlive the call.
  InputTap* inputs = nullptr;
  // Describes what a replay begins with, likewise. May be null. Must outlive
  // the call.
  StartTap* start = nullptr;
  // Not zero: end the recording. May be null. Must outlive the call.
  const volatile std::sig_atomic_t* stop = nullptr;
  std::string sys = "/sys";
  std::string proc = "/proc";
};

struct PerfRecorded {
  PerfRecording recording;  // over
  PerfCapture capture;      // written
  PerfRun run;
  bool dumped_core = false;  // the launched program; by the wait status
  // A process that ran was stopped for so long, so that its start could be
  // described.
  uint64_t stopped_ms = 0;
  std::string no_start;  // why it could not; empty: it could, or nobody wanted
  std::string not_given_back;  // why something done to it was not undone
};

// Records and writes the file `perf_data`. Ends with the program or process, by
// `stop`, or after `seconds`.
//
// kInvalidArgument: not one target, or it is not there; inputs are wanted of
// what has none. kUnsupported: no Intel PT here. kSystem: the kernel refused;
// the message says what would help. Errors of `inputs` as they are.
[[nodiscard]] Result<PerfRecorded> RecordWithPerf(
    perf::PerfKernel& kernel, FileSystem& files,
    const PerfRecordOptions& options, const std::string& perf_data);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_PERF_RECORD_H_
