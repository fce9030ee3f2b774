#ifndef CLEW_BUNDLE_BUNDLE_H_
#define CLEW_BUNDLE_BUNDLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bundle/core_dump/core_dump.h"
#include "bundle/manifest/manifest.h"
#include "common/file.h"
#include "common/inputs.h"
#include "common/result.h"
#include "common/schedule.h"
#include "common/units.h"

namespace clew::bundle {

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

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_BUNDLE_H_
