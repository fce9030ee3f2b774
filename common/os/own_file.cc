#include "common/os/own_file.h"

#include <filesystem>
#include <system_error>

namespace clew {

namespace fs = std::filesystem;

std::string OwnProgram() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).string();
}

std::vector<std::string> PlacesBeside(const std::string& program,
                                      const std::string& name) {
  const fs::path folder = fs::path(program).parent_path();
  return {(folder / name).string(),
          (folder.parent_path() / "lib/clew" / name).string()};
}

}  // namespace clew
