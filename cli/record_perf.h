#ifndef CLEW_CLI_RECORD_PERF_H_
#define CLEW_CLI_RECORD_PERF_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/record_inputs.h"
#include "common/file.h"
#include "common/result.h"
#include "recorder/perf_record.h"

namespace clew::cli {

struct HardwareReport {
  Failure failure;
  bool has_pt = false;
  bool has_core = false;
  uint64_t pt_bytes = 0;
  recorder::CaptureCounts counts;
  recorder::PerfBundleReport images;
  std::optional<InputsReport> inputs;  // if they were wanted
  // Trouble that did not stop the recording.
  std::vector<std::string> warnings;
};

// Records with perf_event, and inputs if `inputs` says how, into the bundle
// `output`, which is there whole or not at all. Errors as of
// recorder::RecordWithPerf, MakeInputTap and bundle::BundleWriter.
[[nodiscard]] Result<HardwareReport> RecordHardware(
    recorder::perf::PerfKernel& kernel, FileSystem& files,
    const recorder::PerfRecordOptions& options,
    const std::optional<InputsOptions>& inputs, const std::string& output);

}  // namespace clew::cli

#endif  // CLEW_CLI_RECORD_PERF_H_
