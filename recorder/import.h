#ifndef CLEW_RECORDER_IMPORT_H_
#define CLEW_RECORDER_IMPORT_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/inputs.h"
#include "common/progress.h"
#include "common/result.h"
#include "recorder/bundle_writer.h"

namespace clew::recorder {

// A file that an imported recording had mapped executable.
struct ImportedImage {
  std::string path;  // as recorded; its last component is a file's name
  std::vector<uint8_t> build_id;  // as ImageIdOf tells of `file`, if found
  bool has_build_id = true;       // false: build_id is a digest
  bool not_verified = false;      // taken by its path alone
  std::string file;               // where it is now; empty: not found
  uint64_t size_bytes = 0;        // of `file`
};

// What the manifest of an imported bundle says; proto/bundle.proto is the
// specification. Texts may be any bytes.
struct ImportedRun {
  bool cpu_is_intel = false;
  uint32_t cpu_family = 0;
  uint32_t cpu_model = 0;
  uint32_t cpu_stepping = 0;
  uint32_t cores = 0;
  uint32_t time_shift = 0;
  uint32_t time_mult = 0;
  uint64_t time_zero = 0;
  uint32_t tsc_ctc_numerator = 0;
  uint32_t tsc_ctc_denominator = 0;
  uint32_t mtc_period = 0;
  bool mtc = false;
  bool tsc = false;
  bool cyc = false;
  uint32_t max_nonturbo_ratio = 0;
  bool snapshot = false;
  std::string host;
  std::string os_release;
  std::string cpu_description;
  std::string perf_version;
  std::vector<std::string> command;
  Failure failure;
  bool core_registers_exact = false;
  uint64_t lost_aux_bytes = 0;
  uint64_t lost_records = 0;
  std::vector<ImportedImage> images;
};

// The bytes of manifest.pb.
std::string ImportManifest(const ImportedRun& run);

// Copies what `fd` gives until its end to the file `name` of the bundle,
// synced; returns how many bytes. Memory: one buffer. `source` names it in
// messages; `total` is its size for `progress` (may be null), 0 if not known.
[[nodiscard]] Result<uint64_t> CopyInto(BundleWriter& bundle,
                                        const std::string& name, int fd,
                                        const std::string& source,
                                        uint64_t total, ProgressSink* progress);

// Writes images/ and manifest.pb. kSystem also if a file is no longer of the
// build that `run` says.
[[nodiscard]] Status WriteImport(BundleWriter& bundle, const ImportedRun& run);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_IMPORT_H_
