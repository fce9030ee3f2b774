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
#include "common/inputs.h"
#include "common/os/file.h"
#include "common/result.h"
#include "common/schedule.h"
#include "common/units.h"

namespace clew::bundle {

// Reads a bundle directory. Every byte of it is suspect. Every call fails with
// kCorruptInput, with file, place, what was found and wanted, if a file breaks
// the format; with kUnsupported if this reader does not know the version of the
// format; with kSystem if a file is not there. Not thread-safe.
class Bundle {
 public:
  // Reads the manifest. Fails with kInvalidArgument if `path` is an unfinished
  // recording (*.partial) or not a bundle.
  [[nodiscard]] static Result<Bundle> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }
  std::string perf_data_path() const { return path_ + "/perf.data"; }
  // Returns the file of the image that was at `path` when it was recorded;
  // empty if there is none.
  std::string ImageOf(const std::string& path) const;

  // Reads the start state. Fails with kSystem if the bundle has none.
  [[nodiscard]] Result<StartState> ReadStart() const;
  // Returns the inputs in the order of each thread. Memory: 8 bytes per record,
  // and one record.
  [[nodiscard]] Result<std::unique_ptr<InputSource>> OpenInputs() const;
  // Returns nullopt if the bundle has no core dump.
  [[nodiscard]] Result<std::optional<CoreDump>> ReadCore() const;
  // Returns the path of the core dump, plain or compressed; empty if there is
  // none.
  std::string core_path() const;

  // Returns nullopt if nothing was solved yet. Fails with kCorruptInput also if
  // the schedule belongs to another recording.
  [[nodiscard]] Result<std::optional<Schedule>> ReadSchedule() const;
  // Writes schedule.pb: whole or not at all, through schedule.pb.partial.
  // `notes` are for people.
  [[nodiscard]] Status WriteSchedule(
      FileSystem& files, const Schedule& schedule,
      const std::vector<std::string>& notes) const;

 private:
  explicit Bundle(std::string path) : path_(std::move(path)) {}
  std::string path_;
  Manifest manifest_;
};

// Reads a start.pb, wherever it is. Fails as the calls of Bundle do.
[[nodiscard]] Result<StartState> ReadStart(const std::string& path);

}  // namespace clew::bundle

#endif  // CLEW_BUNDLE_BUNDLE_H_
