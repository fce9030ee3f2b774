#ifndef CLEW_DECODER_BUNDLE_READER_H_
#define CLEW_DECODER_BUNDLE_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/bundle_facts.h"
#include "common/file.h"
#include "common/inputs.h"
#include "common/result.h"
#include "common/schedule.h"
#include "common/units.h"
#include "decoder/core_dump.h"
#include "decoder/streams.h"
#include "decoder/trace.h"

namespace clew::decoder {

enum class BundleSource : uint8_t {
  kUnknown,
  kPerf,
  kQemu,
  kStepper,
  kImported,  // no start state, no inputs
};

struct BundleImage {
  std::string path;  // at recording time
  std::vector<std::byte> build_id;
  bool has_build_id = false;
  bool not_verified = false;  // taken by its path alone
  uint64_t size_bytes = 0;
  std::string file;  // where it is in the bundle; it may be missing there
};

// Where an imported recording was made; empty: not known.
struct BundleOrigin {
  std::string host;
  std::string os_release;
  std::string cpu;
  std::string perf_version;
  bool snapshot = false;
};

// manifest.pb, as plain values; proto/bundle.proto is the specification.
struct Manifest {
  std::string producer;
  BundleSource source = BundleSource::kUnknown;
  CpuIdentity cpu;
  uint32_t core_count = 0;
  uint64_t clock_slack_ticks = 0;
  bundle::TscConversion conversion;
  std::vector<std::string> command;
  std::string working_directory;
  int64_t recorded_at_s = 0;
  Failure failure;
  std::vector<BundleImage> images;
  uint64_t lost_aux_bytes = 0;
  uint64_t lost_records = 0;
  uint64_t inputs_unknown = 0;
  uint64_t seed = 0;
  uint32_t quantum_insns = 0;
  bool core_registers_exact = false;
  BundleOrigin origin;
  std::optional<Trigger> trigger;
  std::optional<Sufficiency> sufficiency;
  std::vector<std::string> redactions;       // one line a rule that applied
  std::vector<std::string> unlogged_inputs;  // a phrase for each cause
  Journal journal;                           // of the host, about the failure
  std::string assertion;      // that ended the run, kept by redaction
  std::string trace_dropped;  // why there is none; empty: there is
  uint64_t digest = 0;        // of manifest.pb
};

// Reads a bundle directory. Every byte of it is suspect: what breaks the format
// is kCorruptInput with file, place, what was found and wanted; a format
// version that this reader does not know is kUnsupported; a file that is not
// there is kSystem. Not thread-safe.
class Bundle {
 public:
  // Reads the manifest. kInvalidArgument: `path` is an unfinished recording
  // (*.partial) or no bundle.
  [[nodiscard]] static Result<Bundle> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }
  std::string perf_data_path() const { return path_ + "/perf.data"; }
  // The file of the image at `path` (recording time); empty if there is none.
  std::string ImageOf(const std::string& path) const;

  // kSystem if the bundle has none.
  [[nodiscard]] Result<StartState> ReadStart() const;
  // Inputs in the order of each thread. Memory: 8 bytes per record, and one
  // record.
  [[nodiscard]] Result<std::unique_ptr<InputSource>> OpenInputs() const;
  // Absent if the bundle has no core dump.
  [[nodiscard]] Result<std::optional<CoreDump>> ReadCore() const;
  // `name`.core or core.zst, whichever is there; empty if neither.
  std::string core_path() const;
  [[nodiscard]] Result<std::unique_ptr<Trace>> ReadTrace() const;

  // Absent if nothing was solved yet. kCorruptInput also if it belongs to
  // another recording.
  [[nodiscard]] Result<std::optional<Schedule>> ReadSchedule() const;
  // Writes schedule.pb: whole or not at all, through schedule.pb.partial.
  // `notes` are for people.
  [[nodiscard]] Status WriteSchedule(
      FileSystem& files, const Schedule& schedule,
      const std::vector<std::string>& notes) const;
  [[nodiscard]] Result<std::vector<std::string>> ReadScheduleNotes() const;

 private:
  explicit Bundle(std::string path) : path_(std::move(path)) {}
  std::string path_;
  Manifest manifest_;
};

}  // namespace clew::decoder

#endif  // CLEW_DECODER_BUNDLE_READER_H_
