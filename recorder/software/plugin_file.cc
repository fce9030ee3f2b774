#include "recorder/software/plugin_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "common/os/own_file.h"

namespace clew::recorder {

namespace fs = std::filesystem;

std::vector<std::string> PluginPlaces() {
  constexpr const char* kName = "clew-qemu-plugin.so";
  if (const char* chosen = getenv("CLEW_PLUGIN"); chosen != nullptr) {
    return {chosen};
  }
  return PlacesBeside(OwnProgram(), kName);
}

Result<std::string> FindPlugin() {
  const std::vector<std::string> places = PluginPlaces();
  if (const std::string found = FirstFile(places, R_OK); !found.empty()) {
    std::error_code error;
    return fs::absolute(found, error).string();
  }
  return Unsupported(
      "no QEMU plugin: not in {}; build the target clew-qemu-plugin, or set "
      "CLEW_PLUGIN to its path",
      fmt::join(places, ", "));
}

}  // namespace clew::recorder
