#include "daemon/spool/takeover.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "common/os/fd.h"

namespace clew::daemon {
namespace {

// What is done to an open file or folder of a tree.
struct Visitor {
  // `folder` has it as `name`.
  std::function<Status(int file, int folder, const std::string& name,
                       const std::string& path)>
      file;
  // Before and after what is in it.
  std::function<Status(int folder, const std::string& path)> enter;
  std::function<Status(int folder, const std::string& path)> leave;
};

class Walk {
 public:
  Walk(std::string name, const Visitor& visitor)
      : name_(std::move(name)), visitor_(visitor) {}

  Status Folder(const Fd& fd, const std::string& path, int depth) {
    if (depth > kTakenDepthMax) {
      return InvalidArgument("{:?}: folders deeper than {}", path,
                             kTakenDepthMax);
    }
    CLEW_RETURN_IF_ERROR(visitor_.enter(fd.get(), path));
    CLEW_ASSIGN_OR_RETURN(names, Names(fd.get(), path));
    for (const std::string& name : names) {
      CLEW_RETURN_IF_ERROR(
          Entry(fd.get(), name, fmt::format("{}/{}", path, name), depth));
    }
    return visitor_.leave(fd.get(), path);
  }

 private:
  Result<std::vector<std::string>> Names(int folder, const std::string& path) {
    const int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const std::unique_ptr<DIR, int (*)(DIR*)> list(
        own >= 0 ? fdopendir(own) : nullptr, closedir);
    if (list == nullptr) {
      return SystemError(errno, fmt::format("cannot list {:?}", path));
    }
    std::vector<std::string> names;
    while (const dirent* entry = readdir(list.get())) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") {
        continue;
      }
      if (++files_ > kTakenFilesMax) {
        return InvalidArgument("{:?} has more than {} files", name_,
                               kTakenFilesMax);
      }
      names.push_back(name);
    }
    return names;
  }

  Status Entry(int folder, const std::string& name, const std::string& path,
               int depth) {
    // O_NONBLOCK: a pipe must not make us wait for its writer.
    const Fd fd(openat(folder, name.c_str(),
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
      return Folder(fd, path, depth + 1);
    }
    if (!S_ISREG(info.st_mode)) {
      return InvalidArgument("{:?} is neither file nor folder", path);
    }
    if (info.st_nlink != 1) {
      return InvalidArgument("{:?} has {} names, may have one", path,
                             info.st_nlink);
    }
    return visitor_.file(fd.get(), folder, name, path);
  }

  std::string name_;
  const Visitor& visitor_;
  size_t files_ = 0;
};

Status WalkTree(const std::string& folder, const Visitor& visitor) {
  const Fd fd(
      open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd.get() < 0) {
    if (errno == ELOOP || errno == ENOTDIR) {
      return InvalidArgument("{:?} is no folder", folder);
    }
    return SystemError(errno, fmt::format("cannot open {:?}", folder));
  }
  return Walk(folder, visitor).Folder(fd, folder, 0);
}

Status Give(int fd, const std::string& path, Owner owner, mode_t mode) {
  if (fchown(fd, owner.user, owner.group) != 0 || fchmod(fd, mode) != 0) {
    return SystemError(
        errno, fmt::format("cannot change the owner of {:?}; clewd needs "
                           "CAP_CHOWN and CAP_FOWNER for units of other users",
                           path));
  }
  return {};
}

// ---- Copies

// In a folder while a file of it is copied; no bundle has a file of that name.
constexpr const char* kCopyName = "clewd.copy";

bool CopyRange(int from, int to, off_t at, off_t end) {
  if (lseek(to, at, SEEK_SET) < 0) {
    return false;
  }
  while (at < end) {
    const ssize_t count =
        sendfile(to, from, &at, static_cast<size_t>(end - at));
    if (count < 0 && errno != EINTR) {
      return false;
    }
    if (count == 0) {
      break;  // it was cut meanwhile: zeros follow
    }
  }
  return true;
}

// What the file has now; its writer may still be at work.
bool CopyData(int from, int to) {
  if (ioctl(to, FICLONE, from) == 0) {
    return true;
  }
  struct stat info = {};
  if (fstat(from, &info) != 0 || ftruncate(to, info.st_size) != 0) {
    return false;
  }
  for (off_t end = 0; end < info.st_size;) {
    const off_t begin = lseek(from, end, SEEK_DATA);
    if (begin < 0 || begin >= info.st_size) {
      return begin >= 0 || errno == ENXIO;  // only a hole is left
    }
    end = lseek(from, begin, SEEK_HOLE);
    if (end < 0) {
      return errno == ENXIO;
    }
    end = std::min(end, info.st_size);
    if (!CopyRange(from, to, begin, end)) {
      return false;
    }
  }
  return true;
}

Status Replace(int file, int folder, const std::string& name,
               const std::string& path, Owner owner) {
  unlinkat(folder, kCopyName, 0);  // of a process that was killed
  const Fd copy(openat(folder, kCopyName,
                       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                       0600));
  if (copy.get() < 0 || !CopyData(file, copy.get())) {
    return SystemError(errno, fmt::format("cannot copy {:?}", path));
  }
  CLEW_RETURN_IF_ERROR(Give(copy.get(), path, owner, 0600));
  if (fsync(copy.get()) != 0 ||
      renameat(folder, kCopyName, folder, name.c_str()) != 0) {
    return SystemError(errno, fmt::format("cannot replace {:?}", path));
  }
  return {};
}

Status Nothing(int, const std::string&) { return {}; }

}  // namespace

Status TakeOver(const std::string& folder) {
  const Owner we = {geteuid(), getegid()};
  const Visitor visitor = {
      .file =
          [&](int file, int, const std::string&, const std::string& path) {
            return Give(file, path, we, 0600);
          },
      .enter =
          [&](int fd, const std::string& path) {
            return Give(fd, path, we, 0700);
          },
      .leave = Nothing};
  return WalkTree(folder, visitor);
}

Status Renew(const std::string& folder, Owner owner) {
  const Visitor visitor = {
      .file = [&](int file, int in, const std::string& name,
                  const std::string& path) -> Status {
        if (name == kCopyName) {
          return {};  // left behind; the next file replaces it
        }
        return Replace(file, in, name, path, owner);
      },
      .enter = Nothing,
      .leave = [&](int fd, const std::string& path) -> Status {
        unlinkat(fd, kCopyName, 0);
        if (fsync(fd) != 0) {
          return SystemError(errno, fmt::format("cannot sync {:?}", path));
        }
        return Give(fd, path, owner, 0700);
      }};
  return WalkTree(folder, visitor);
}

}  // namespace clew::daemon
