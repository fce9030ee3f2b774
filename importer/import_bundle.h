#ifndef CLEW_IMPORTER_IMPORT_BUNDLE_H_
#define CLEW_IMPORTER_IMPORT_BUNDLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bundle/core_dump/core_dump.h"
#include "bundle/manifest/manifest.h"
#include "common/os/file.h"
#include "common/progress.h"
#include "common/result.h"
#include "decoder/image_search.h"
#include "decoder/input_counts.h"
#include "decoder/perf_trace.h"

namespace clew::importer {

struct ImportOptions {
  std::string perf_data;  // "-": standard input
  std::string output;     // the bundle to make
  std::string core;       // a core dump; empty: none
  // start.pb and inputs.pb of the same run, as `clew record` writes them; both
  // empty: without.
  std::string start = {};
  std::string inputs = {};
  // Files, and folders to look below, for images.
  std::vector<std::string> images = {};
  // The recording CPU, as perf names it (cpu_id.h); empty: as the file says.
  std::string cpu = {};
};

struct ImportReport {
  bool pipe_format = false;
  uint64_t perf_data_bytes = 0;
  uint64_t pt_bytes = 0;
  std::string streams;  // whose PT it is: "2 cores"
  uint64_t slices = 0;
  std::vector<decoder::RecordCount> records;
  std::vector<decoder::ImageMatch> images;
  bundle::Manifest manifest;
  bool has_core = false;
  uint64_t start_threads = 0;  // that the start state has; 0: none was given
  decoder::InputCounts inputs;
  // Trouble that did not stop the import.
  std::vector<std::string> warnings;
};

// Makes a bundle of a perf.data with intel_pt, in file or pipe format. The
// bundle is there whole or not at all. `progress` may be nullptr. Fails with
// kInvalidArgument if the output exists, an input is of the wrong kind, or of
// start state and inputs one is missing, with kCorruptInput if perf.data or
// another input breaks its format, with
// kUnsupported if it has no Intel PT or PerfData does not read its form, with
// kLimit if its compressed records expand to too much, and with kSystem if a
// file cannot be read or written.
[[nodiscard]] Result<ImportReport> ImportBundle(FileSystem& files,
                                                const ImportOptions& options,
                                                ProgressSink* progress);

// Returns what the manifest is to say about `trace`, its images and, unless
// null, its core dump.
bundle::Manifest DescribeRun(const decoder::PerfTrace& trace,
                             const std::vector<decoder::ImageMatch>& images,
                             const bundle::CoreDump* core);

}  // namespace clew::importer

#endif  // CLEW_IMPORTER_IMPORT_BUNDLE_H_
