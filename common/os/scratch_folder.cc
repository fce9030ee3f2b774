#include "common/os/scratch_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace clew {

Result<ScratchFolder> ScratchFolder::Make(std::string_view name) {
  std::error_code error;
  const auto below = std::filesystem::temp_directory_path(error);
  if (error) {
    return SystemError(error.value(),
                       "cannot make a temporary folder where TMPDIR says");
  }
  std::string path = below / fmt::format("{}-XXXXXX", name);
  if (mkdtemp(path.data()) == nullptr) {
    return SystemError(errno, fmt::format("cannot make {:?}", path));
  }
  return ScratchFolder(std::move(path));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;  // leftovers do not make the work fail
  if (!path_.empty()) {
    std::filesystem::remove_all(path_, ignored);
  }
}

}  // namespace clew
