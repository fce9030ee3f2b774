#ifndef CLEW_RECORDER_PERF_BUNDLE_H_
#define CLEW_RECORDER_PERF_BUNDLE_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "bundle/manifest/bundle_writer.h"
#include "common/inputs.h"
#include "common/result.h"
#include "recorder/images/describe_image.h"
#include "recorder/images/image_source.h"
#include "recorder/images/perf_capture.h"
#include "recorder/perf_recording.h"

namespace clew::recorder {

// What the bundle of a hardware recording says besides its perf.data.
struct PerfRun {
  std::vector<std::string> command;  // any bytes; others than UTF-8 become "?"
  std::string working_directory;
  int64_t started_at_s = 0;  // wall clock since 1970
  Failure failure;
  bool core_registers_exact = false;
  uint64_t inputs_unknown = 0;               // of an input log, if there is one
  std::vector<std::string> unlogged_inputs;  // what it lacks, likewise
  bool images = true;                        // false: none are copied or listed
  // Whose images are wanted; empty: those of every process.
  std::set<int32_t> image_processes;
  // Files of processes that were looked at while they ran; others are looked
  // for at their path, with these rights.
  HeldImages held;
  ImageRights image_rights = ImageRights::kOwn;
  // Where they are read from instead; must outlive the call.
  ImageSource* image_source = nullptr;
  // The vDSO of the process, where the recorder changed it; empty: this
  // process's.
  std::vector<std::byte> vdso;
  // The smallest files come first; what is left over is listed as missing.
  uint64_t image_bytes_max = uint64_t{4} << 30;
};

struct MissingImage {
  std::string path;
  std::string why;
};

struct PerfBundleReport {
  std::vector<bundle::BundleImage> images;  // copied
  uint64_t image_bytes = 0;
  std::vector<MissingImage> missing;
};

// Writes images/ and manifest.pb of a recording of which perf.data is written.
// An image is taken by its build-id. One for which the kernel told none, and
// that is not held, is the file that is at its path now. What is not there any
// more, or may not be read, is listed.
[[nodiscard]] Result<PerfBundleReport> WritePerfBundle(
    bundle::BundleWriter& bundle, const PerfRecording& recording,
    const PerfCapture& capture, const PerfRun& run);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_PERF_BUNDLE_H_
