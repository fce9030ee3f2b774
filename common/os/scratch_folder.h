#ifndef CLEW_COMMON_OS_SCRATCH_FOLDER_H_
#define CLEW_COMMON_OS_SCRATCH_FOLDER_H_

#include <string>
#include <string_view>
#include <utility>

#include "common/result.h"

namespace clew {

// A new folder that only this user can enter, where temporary files go
// ($TMPDIR, else /tmp). Removed, with all in it, when destroyed. Moves.
class ScratchFolder {
 public:
  // Its name begins with `name`. kSystem.
  [[nodiscard]] static Result<ScratchFolder> Make(std::string_view name);
  ScratchFolder(ScratchFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;  // empty: moved from
};

}  // namespace clew

#endif  // CLEW_COMMON_OS_SCRATCH_FOLDER_H_
