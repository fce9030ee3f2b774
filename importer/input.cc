#include "importer/input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace clew::importer {
namespace {

namespace fs = std::filesystem;

bool Has(const std::string& folder, const char* name) {
  std::error_code error;
  return fs::exists(fs::path(folder) / name, error);
}

std::unexpected<Error> WrongFolder(const std::string& path) {
  if (Has(path, "manifest.pb")) {
    return InvalidArgument(
        "{:?} is a bundle already; clew info and clew decode read it", path);
  }
  if (Has(path, "data.0")) {
    return InvalidArgument(
        "{:?} is a folder, as 'perf record --threads' writes; record without "
        "--threads",
        path);
  }
  return InvalidArgument(
      "{:?} is a folder; wanted the perf.data that perf record wrote", path);
}

// Where the recording is that somebody named. Source of the folders' layout:
// linux/tools/perf/Documentation/perf.data-directory-format.txt.
Result<std::string> FindRecording(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    return path;
  }
  if (Has(path, "kcore_dir") && Has(path, "data") && !Has(path, "data.0")) {
    return (fs::path(path) / "data").string();
  }
  return WrongFolder(path);
}

}  // namespace

Result<ImportInput> ImportInput::Open(const std::string& path) {
  if (path == "-") {
    return ImportInput(STDIN_FILENO, "standard input");
  }
  CLEW_ASSIGN_OR_RETURN(recording, FindRecording(path));
  const int fd = open(recording.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return SystemError(errno, fmt::format("cannot open {:?}", recording));
  }
  ImportInput input(fd, recording);
  struct stat info = {};
  if (fstat(fd, &info) != 0) {
    return SystemError(errno, fmt::format("cannot stat {:?}", recording));
  }
  input.is_regular_ = S_ISREG(info.st_mode);
  input.size_bytes_ = static_cast<uint64_t>(info.st_size);
  return input;
}

ImportInput::~ImportInput() {
  if (fd_ > STDIN_FILENO) {
    close(fd_);
  }
}

}  // namespace clew::importer
