#ifndef CLEW_BUNDLE_PERF_DATA_PERF_FILE_WRITER_H_
#define CLEW_BUNDLE_PERF_DATA_PERF_FILE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bundle/perf_data/file_format.h"
#include "common/byte_builder.h"
#include "common/os/file.h"
#include "common/result.h"
#include "common/units.h"

namespace clew::bundle {

// Writes a perf.data file of records and PT bytes as they come from the kernel,
// unchanged.
//
// Until Finish they are in files beside `path` (path.records, path.pt.N), since
// what precedes them in the file is known last; Finish needs room for the
// records and the largest of the others twice. PT bytes of a core that follow
// each other become one AUXTRACE record. Memory: one buffer, and some tens of
// bytes for each stretch of PT.
//
// Each call fails with kSystem if the file system does; the writer must then be
// dropped and leaves files for the owner of their folder to remove. AddRecord
// and AddPt allocate only at a core's first bytes. Not thread-safe. Moves.
class PerfFileWriter {
 public:
  // `files` must outlive the writer.
  [[nodiscard]] static Result<PerfFileWriter> Create(FileSystem& files,
                                                     const std::string& path);
  PerfFileWriter(PerfFileWriter&&) = default;
  PerfFileWriter& operator=(PerfFileWriter&&) = default;

  // Adds one record, header included.
  [[nodiscard]] Status AddRecord(std::span<const std::byte> record);
  // Adds FINISHED_ROUND: every ring was emptied since the last one, so no later
  // record is older than what came before that (tools/perf/util/
  // ordered-events.h). Adds nothing if there was no record since.
  [[nodiscard]] Status EndRound();
  // Adds bytes [offset, ...) of the core's PT, in one or two stretches. Offsets
  // must not go back; where they leave a hole a new AUXTRACE record begins.
  [[nodiscard]] Status AddPt(CoreId core, uint64_t offset,
                             std::span<const std::byte> first,
                             std::span<const std::byte> second);

  // Writes the file and syncs it: `first_records`, what was added, the PT with
  // `reference_tsc` (as AuxtraceHead::reference; 1 where a core has none), and
  // what `head` says. Removes the other files. Nothing may be called
  // afterwards.
  [[nodiscard]] Status Finish(const PerfFileHead& head,
                              std::span<const std::byte> first_records,
                              const std::map<CoreId, uint64_t>& reference_tsc);

  uint64_t record_bytes() const { return record_bytes_ + buffer_.size(); }
  uint64_t pt_bytes() const { return pt_bytes_; }

 private:
  // PT bytes of a core without a hole between them.
  struct Stretch {
    CoreId core;
    std::string path;
    uint64_t offset = 0;
    uint64_t bytes = 0;
    std::unique_ptr<WritableFile> file;
  };
  PerfFileWriter(FileSystem& files, std::string path);
  Status FlushRecords();
  Result<Stretch*> StretchAt(CoreId core, uint64_t offset);
  Status CopyFile(WritableFile& out, const std::string& path, uint64_t bytes);
  Status CopyPt(WritableFile& out, const Stretch& stretch, uint64_t reference);
  uint64_t DataBytes(std::span<const std::byte> first_records) const;

  FileSystem* files_;
  std::string path_;
  std::unique_ptr<WritableFile> records_;
  uint64_t record_bytes_ = 0;  // in the file
  std::vector<std::byte> buffer_;
  bool round_has_records_ = false;
  std::vector<Stretch> stretches_;
  std::map<CoreId, size_t> last_stretch_;
  uint64_t pt_bytes_ = 0;
};

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_PERF_DATA_PERF_FILE_WRITER_H_
