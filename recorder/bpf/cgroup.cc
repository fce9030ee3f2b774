#include "recorder/bpf/cgroup.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

namespace clew::recorder::bpf {
namespace {

// Where cgroup2 is mounted from its root: proc(5), /proc/pid/mountinfo.
std::vector<std::string> Mounts(const std::string& mountinfo) {
  std::vector<std::string> mounts;
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    const std::vector<std::string> fields{
        std::istream_iterator<std::string>(words), {}};
    const auto dash = std::ranges::find(fields, "-");
    if (fields.size() > 5 && std::distance(dash, fields.end()) > 1 &&
        dash[1] == "cgroup2" && fields[3] == "/") {
      mounts.push_back(fields[4]);
    }
  }
  return mounts;
}

// How far below `mount` the folder is; nullopt if it is elsewhere.
std::optional<uint32_t> DepthBelow(const std::string& mount,
                                   const std::filesystem::path& path) {
  const auto below = path.lexically_relative(mount);
  if (below.empty() || *below.begin() == "..") {
    return std::nullopt;
  }
  return below == "."
             ? 0
             : static_cast<uint32_t>(std::distance(below.begin(), below.end()));
}

}  // namespace

Result<Cgroup> FindCgroup(const std::string& path,
                          const std::string& mountinfo) {
  std::error_code error;
  const auto whole = std::filesystem::canonical(path, error);
  if (error) {
    return InvalidArgument("cgroup {:?}: {}", path, error.message());
  }
  struct statfs system = {};
  struct stat folder = {};
  if (statfs(whole.c_str(), &system) != 0 ||
      stat(whole.c_str(), &folder) != 0 ||
      system.f_type != CGROUP2_SUPER_MAGIC) {
    return InvalidArgument(
        "cgroup {:?}: not in a cgroup2 file system; give the folder of a unit, "
        "as below /sys/fs/cgroup",
        path);
  }
  for (const std::string& mount : Mounts(mountinfo)) {
    if (const auto level = DepthBelow(mount, whole)) {
      // kernfs: the inode number is the cgroup's id on 64-bit kernels.
      return Cgroup{.id = folder.st_ino, .level = *level};
    }
  }
  return InvalidArgument(
      "cgroup {:?}: how deep it is cannot be told, because no cgroup2 file "
      "system is mounted above it from its root",
      path);
}

}  // namespace clew::recorder::bpf
