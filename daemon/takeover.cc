#include "daemon/takeover.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "common/fd.h"

namespace clew::daemon {
namespace {

class Taker {
 public:
  explicit Taker(std::string name) : name_(std::move(name)) {}

  Status Folder(Fd fd, const std::string& path, int depth) {
    if (depth > kTakenDepthMax) {
      return InvalidArgument("{:?}: folders deeper than {}", path,
                             kTakenDepthMax);
    }
    CLEW_RETURN_IF_ERROR(Own(fd.get(), path, 0700));
    const std::unique_ptr<DIR, int (*)(DIR*)> list(fdopendir(fd.Release()),
                                                   closedir);
    if (list == nullptr) {
      return SystemError(errno, fmt::format("cannot list {:?}", path));
    }
    while (const dirent* entry = readdir(list.get())) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") {
        CLEW_RETURN_IF_ERROR(Entry(dirfd(list.get()), name,
                                   fmt::format("{}/{}", path, name), depth));
      }
    }
    return {};
  }

 private:
  Status Entry(int folder, const std::string& name, const std::string& path,
               int depth) {
    if (++files_ > kTakenFilesMax) {
      return InvalidArgument("{:?} has more than {} files", name_,
                             kTakenFilesMax);
    }
    // O_NONBLOCK: a pipe must not make us wait for its writer.
    Fd fd(openat(folder, name.c_str(),
                 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (fd.get() < 0) {
      if (errno == ELOOP || errno == ENXIO) {
        return InvalidArgument("{:?} is neither file nor folder", path);
      }
      return SystemError(errno, fmt::format("cannot open {:?}", path));
    }
    struct stat info = {};
    if (fstat(fd.get(), &info) != 0) {
      return SystemError(errno, fmt::format("cannot look at {:?}", path));
    }
    if (S_ISDIR(info.st_mode)) {
      return Folder(std::move(fd), path, depth + 1);
    }
    if (!S_ISREG(info.st_mode)) {
      return InvalidArgument("{:?} is neither file nor folder", path);
    }
    if (info.st_nlink != 1) {
      return InvalidArgument("{:?} has {} names, may have one", path,
                             info.st_nlink);
    }
    return Own(fd.get(), path, 0600);
  }

  static Status Own(int fd, const std::string& path, mode_t mode) {
    if (fchown(fd, geteuid(), getegid()) != 0 || fchmod(fd, mode) != 0) {
      return SystemError(
          errno,
          fmt::format("cannot become owner of {:?}; clewd needs "
                      "CAP_CHOWN and CAP_FOWNER for units of other users",
                      path));
    }
    return {};
  }

  std::string name_;
  size_t files_ = 0;
};

}  // namespace

Status TakeOver(const std::string& folder) {
  Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd.get() < 0) {
    if (errno == ELOOP || errno == ENOTDIR) {
      return InvalidArgument("{:?} is no folder", folder);
    }
    return SystemError(errno, fmt::format("cannot open {:?}", folder));
  }
  return Taker(folder).Folder(std::move(fd), folder, 0);
}

}  // namespace clew::daemon
