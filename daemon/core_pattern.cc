#include "daemon/core_pattern.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "common/os/fd.h"

namespace clew::daemon {
namespace {

// Linux, include/linux/binfmts.h, CORENAME_MAX_SIZE, with the final zero.
constexpr size_t kPatternMax = 127;
// What core_handler.c expects.
constexpr const char* kSpecifiers = "%P %p %I %i %u %g %d %s %t %c %h %e";

Result<std::string> ReadLine(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> bytes = {};
  const ssize_t count =
      fd.get() < 0 ? -1 : read(fd.get(), bytes.data(), bytes.size());
  if (count < 0) {
    return SystemError(errno, fmt::format("cannot read {:?}", path));
  }
  const std::string text(bytes.data(), static_cast<size_t>(count));
  return text.substr(0, text.find('\n'));
}

Status SetPattern(const Paths& paths, const std::string& pattern) {
  Fd fd(open(paths.core_pattern.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  const std::string line = pattern + "\n";
  if (fd.get() < 0 || write(fd.get(), line.data(), line.size()) !=
                          static_cast<ssize_t>(line.size())) {
    return SystemError(errno,
                       fmt::format("cannot write {:?}; root of the host may",
                                   paths.core_pattern));
  }
  return {};
}

Status Keep(FileSystem& files, const std::string& path,
            const std::string& pattern) {
  const std::string line = pattern + "\n";
  const std::string partial = path + ".partial";
  const std::string folder = std::filesystem::path(path).parent_path().string();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  CLEW_RETURN_IF_ERROR(
      WriteWholeFile(files, partial, std::as_bytes(std::span(line))));
  CLEW_RETURN_IF_ERROR(files.Rename(partial, path));
  return files.SyncDirectory(folder);
}

}  // namespace

Result<std::string> ReadCorePattern(const Paths& paths) {
  return ReadLine(paths.core_pattern);
}

bool IsOurPattern(const Paths& paths, const std::string& pattern) {
  return pattern.starts_with("|" + paths.core_handler + " ");
}

Result<std::string> InstallCorePattern(FileSystem& files, const Paths& paths) {
  CLEW_ASSIGN_OR_RETURN(now, ReadCorePattern(paths));
  if (IsOurPattern(paths, now)) {
    return ReadLine(paths.core_pattern_before);
  }
  const std::string ours =
      fmt::format("|{} {}", paths.core_handler, kSpecifiers);
  if (ours.size() > kPatternMax) {
    return InvalidArgument("{:?} is too long for the kernel, at most {} bytes",
                           ours, kPatternMax);
  }
  if (access(paths.core_handler.c_str(), X_OK) != 0) {
    return SystemError(
        errno, fmt::format("no core dump handler {:?}; install the package "
                           "clewd",
                           paths.core_handler));
  }
  // First kept, then set: a handler that runs finds where to go on to.
  CLEW_RETURN_IF_ERROR(Keep(files, paths.core_pattern_before, now));
  CLEW_RETURN_IF_ERROR(SetPattern(paths, ours));
  return now;
}

Result<std::string> UninstallCorePattern(FileSystem& files,
                                         const Paths& paths) {
  CLEW_ASSIGN_OR_RETURN(now, ReadCorePattern(paths));
  const auto before = ReadLine(paths.core_pattern_before);
  if (!IsOurPattern(paths, now)) {
    if (!before) {
      return "";
    }
    return InvalidArgument(
        "kernel.core_pattern is {:?}, which clew did not set; it stays. "
        "Remove {:?} if that is right",
        now, paths.core_pattern_before);
  }
  // Without a note of it, the kernel's own default (core(5)).
  std::string pattern = before.value_or("core");
  CLEW_RETURN_IF_ERROR(SetPattern(paths, pattern));
  CLEW_RETURN_IF_ERROR(files.RemoveAll(paths.core_pattern_before));
  return pattern;
}

}  // namespace clew::daemon
