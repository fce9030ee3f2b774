#include "common/os/own_file.h"

#include <unistd.h>

#include <algorithm>
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

std::string FirstFile(const std::vector<std::string>& places, int mode) {
  const auto first =
      std::ranges::find_if(places, [&](const std::string& place) {
        std::error_code error;
        return fs::is_regular_file(place, error) &&
               access(place.c_str(), mode) == 0;
      });
  return first == places.end() ? std::string() : *first;
}

}  // namespace clew
