#ifndef CLEW_BUNDLE_PERF_DATA_PERF_DATA_WRITER_H_
#define CLEW_BUNDLE_PERF_DATA_PERF_DATA_WRITER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bundle/perf_data/file_format.h"
#include "bundle/perf_data/record_builder.h"
#include "common/os/file.h"
#include "common/result.h"
#include "common/units.h"

namespace clew::bundle {

struct PerfDataConfig {
  uint32_t core_count = 1;
  // What made the PT, every core's: perf_event_attr::config of intel_pt, and
  // ratios as PtInfo has them.
  uint64_t pt_config = 0;
  uint32_t tsc_ctc_numerator = 0;  // 0 and 0: not known
  uint32_t tsc_ctc_denominator = 0;
  uint64_t max_nonturbo_ratio = 0;
  TscConversion clock;
  std::vector<std::string> command;  // argv of the recorded program
  std::string host_name = "localhost";
  std::string os_release = "6.1.0";
  std::string version = "clew";
  std::string cpu_description = "clew virtual core";
  // As perf writes it: vendor, family, model, stepping.
  std::string cpu_id = "GenuineIntel,6,158,10";
};

// Who, when and where, at the end of every record.
struct RecordOrigin {
  int32_t process = 0;  // pid; 0 and thread 0 for the idle task
  Tid thread;
  TscTicks time;
  CoreId core;
};

inline constexpr uint64_t kAuxFlagTruncated = 1;  // PERF_AUX_FLAG_TRUNCATED

// Writes a perf.data file of Intel PT with sideband, as `perf record -e
// intel_pt//u` makes it, so that perf and our decoder read it.
//
// Records stay in the order of the Add calls. They should come in order of time
// on each core; between cores the reader sorts. PT bytes are named by
// AddAuxtrace and copied by Finish. Memory is bounded by a buffer of fixed
// size; until Finish, records are in `path`.records.
//
// Each call fails with kSystem if the file system does; the writer must then be
// dropped and leaves files for its owner to remove.
// Not thread-safe. Moves.
class PerfDataWriter {
 public:
  // Begins a file. `files` must outlive the writer. Fails with kInvalidArgument
  // if a value of `config` is out of its range.
  [[nodiscard]] static Result<PerfDataWriter> Create(FileSystem& files,
                                                     const std::string& path,
                                                     PerfDataConfig config);
  PerfDataWriter(PerfDataWriter&&) noexcept;
  PerfDataWriter& operator=(PerfDataWriter&&) noexcept;
  ~PerfDataWriter();

  // Adds a thread's name; `exec` says that execve set it.
  [[nodiscard]] Status AddComm(const RecordOrigin& origin,
                               std::string_view name, bool exec);
  [[nodiscard]] Status AddMmap2(const RecordOrigin& origin,
                                const PerfMapping& mapping);
  // `origin.thread` of `origin.process` made `child` of `child_process` (the
  // same process for a thread).
  [[nodiscard]] Status AddFork(const RecordOrigin& origin,
                               int32_t child_process, Tid child);
  // `origin.thread` ends. Parent is whoever made it.
  [[nodiscard]] Status AddExit(const RecordOrigin& origin,
                               int32_t parent_process, Tid parent);
  // `origin.thread` begins to run on `origin.core`.
  [[nodiscard]] Status AddSwitchIn(const RecordOrigin& origin);
  // It stops; `preempted` while still able to run.
  [[nodiscard]] Status AddSwitchOut(const RecordOrigin& origin, bool preempted);
  // Tracing of `origin.thread` begins on `origin.core`.
  [[nodiscard]] Status AddItraceStart(const RecordOrigin& origin);
  // Bytes [offset, offset + size) of the core's PT became available.
  [[nodiscard]] Status AddAux(const RecordOrigin& origin, uint64_t offset_bytes,
                              uint64_t size_bytes, uint64_t flags);

  // All PT bytes of `core` are in the file `pt_path`, which must stay until
  // Finish. At most once per core. An empty file is fine.
  [[nodiscard]] Status AddAuxtrace(CoreId core, const std::string& pt_path);

  // Writes the file, syncs it, and removes the temporary one. Nothing may be
  // called afterwards.
  [[nodiscard]] Status Finish();

 private:
  class Impl;
  explicit PerfDataWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_PERF_DATA_PERF_DATA_WRITER_H_
