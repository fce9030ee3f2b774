#ifndef CLEW_RECORDER_HARDWARE_RECORD_HARDWARE_H_
#define CLEW_RECORDER_HARDWARE_RECORD_HARDWARE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/os/file.h"
#include "common/result.h"
#include "recorder/hardware/input_thread.h"
#include "recorder/perf_record.h"

namespace clew::recorder {

struct HardwareReport {
  Failure failure;
  bool has_pt = false;
  bool has_core = false;
  // A start state: of a command or process, with inputs.
  bool has_start = false;
  uint64_t stopped_ms = 0;  // for so long the process was, for that
  uint64_t pt_bytes = 0;
  CaptureCounts counts;
  PerfBundleReport images;
  std::optional<InputsReport> inputs;  // if they were wanted
  // Trouble that did not stop the recording.
  std::vector<std::string> warnings;
};

// Records with perf_event, and inputs if `inputs` says how, into the bundle
// `output`, which is there whole or not at all. Errors as of
// RecordWithPerf, MakeInputTap and bundle::BundleWriter.
[[nodiscard]] Result<HardwareReport> RecordHardware(
    perf::PerfKernel& kernel, FileSystem& files,
    const PerfRecordOptions& options,
    const std::optional<InputsOptions>& inputs, const std::string& output);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_HARDWARE_RECORD_HARDWARE_H_
