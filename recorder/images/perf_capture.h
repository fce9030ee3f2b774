#ifndef CLEW_RECORDER_IMAGES_PERF_CAPTURE_H_
#define CLEW_RECORDER_IMAGES_PERF_CAPTURE_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bundle/perf_data/kernel_records.h"
#include "bundle/perf_data/perf_file_writer.h"
#include "bundle/perf_data/record_builder.h"
#include "common/os/file.h"
#include "common/result.h"
#include "recorder/perf/core_rings.h"

namespace clew::recorder {

// A file that processes had mapped executable.
struct MappedImage {
  std::string path;
  std::vector<std::byte> build_id;  // empty: none was told
  auto operator<=>(const MappedImage&) const = default;
};

struct CaptureCounts {
  uint64_t records = 0;
  uint64_t lost_records = 0;        // as LOST and LOST_SAMPLES tell
  uint64_t truncations = 0;         // the AUX ring was full
  uint64_t other_gaps = 0;          // in PT: of all other causes
  uint64_t gap_bytes = 0;           // of those
  uint64_t mappings_forgotten = 0;  // more than kMappingsMax
};

// Writes a session's records to a perf.data file and collects what the rest of
// the bundle needs to know of them: losses, mapped images, processes that ran.
//
// Memory: that of PerfFileWriter, and at most kMappingsMax pairs of image and
// process. Errors as of PerfFileWriter. Not thread-safe. Moves.
class PerfCapture final : public perf::SessionSink {
 public:
  static constexpr size_t kMappingsMax = 100'000;

  // `files` must outlive it.
  [[nodiscard]] static Result<PerfCapture> Create(FileSystem& files,
                                                  const std::string& path);

  Status OnEvent(CoreId core, const perf::RecordView& record,
                 const perf::Event& event) override;
  Status OnAux(CoreId core, const perf::AuxRingPiece& piece) override;
  void OnGap(CoreId core, const perf::AuxGap& gap) override;

  // Threads and mappings that were there before, as records of time `nanos`
  // with `event_id`, from now on.
  void SetOrigin(uint64_t nanos, uint64_t event_id);
  [[nodiscard]] Status AddThread(const bundle::TaskId& task,
                                 const bundle::TaskId& parent,
                                 std::string_view name);
  [[nodiscard]] Status AddMapping(const bundle::TaskId& task,
                                  const bundle::PerfMapping& mapping);

  // As PerfFileWriter::EndRound.
  [[nodiscard]] Status EndRound() { return writer_.EndRound(); }
  // The core has gone and come again: its offsets begin again at 0. What
  // follows is put behind a hole.
  void RestartCore(CoreId core);

  // `clock`: of perf, if it is that of the TSC.
  [[nodiscard]] Status Finish(const bundle::PerfFileHead& head,
                              std::span<const std::byte> first_records,
                              const bundle::TscConversion* clock);

  const CaptureCounts& counts() const { return counts_; }
  // CPUs that a record or a byte came from.
  size_t core_count() const { return cores_.size(); }
  uint64_t pt_bytes() const { return writer_.pt_bytes(); }
  uint64_t record_bytes() const { return writer_.record_bytes(); }
  // Processes that were switched in, and those that they were forked from, of
  // which they may have the mappings. At most kMappingsMax.
  std::set<int32_t> ProcessesThatRan() const;
  // Whose mappings they are.
  const std::map<MappedImage, std::set<int32_t>>& images() const {
    return images_;
  }

 private:
  struct Core {
    uint64_t base = 0;  // of offsets
    uint64_t end = 0;   // of its bytes, base included
    uint64_t last_nanos = 0;
  };
  explicit PerfCapture(bundle::PerfFileWriter writer)
      : writer_(std::move(writer)) {}
  Status AddOwn(uint32_t type, uint16_t misc, const ByteBuilder& body,
                const bundle::TaskId& task);
  Status AddShifted(const perf::RecordView& record, uint64_t base);
  void NoteMapping(int32_t process, MappedImage image);
  void NoteTask(const bundle::TaskRecord& task);

  bundle::PerfFileWriter writer_;
  CaptureCounts counts_;
  std::map<CoreId, Core> cores_;
  std::map<MappedImage, std::set<int32_t>> images_;
  size_t mappings_ = 0;
  std::set<int32_t> ran_;
  std::map<int32_t, int32_t> parents_;  // of processes
  uint64_t origin_nanos_ = 0;
  uint64_t origin_event_ = 0;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_IMAGES_PERF_CAPTURE_H_
