#include "common/os/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/bytes.h"
#include "common/os/fd.h"

namespace clew {
namespace {

std::string About(std::string_view verb, const std::string& path) {
  return fmt::format("cannot {} {:?}", verb, path);
}

class PosixFile final : public WritableFile {
 public:
  PosixFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  Status Append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = write(fd_.get(), bytes.data(), bytes.size());
      if (written < 0) {
        if (errno == EINTR) {
          continue;
        }
        return SystemError(errno, About("write", path_));
      }
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
    return {};
  }

  Status Sync() override {
    if (fsync(fd_.get()) != 0) {
      return SystemError(errno, About("sync", path_));
    }
    return {};
  }

 private:
  std::string path_;
  Fd fd_;
};

Status SyncPath(const std::string& path, int flags) {
  const Fd fd(open(path.c_str(), flags | O_CLOEXEC));
  if (fd.get() < 0) {
    return SystemError(errno, About("open", path));
  }
  if (fsync(fd.get()) != 0) {
    return SystemError(errno, About("sync", path));
  }
  return {};
}

class RealFileSystem final : public FileSystem {
 public:
  Result<std::unique_ptr<WritableFile>> Create(
      const std::string& path) override {
    const int fd =
        open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
      return SystemError(errno, About("create", path));
    }
    return std::make_unique<PosixFile>(path, fd);
  }

  Status CreateDirectory(const std::string& path) override {
    if (mkdir(path.c_str(), 0700) != 0) {
      return SystemError(errno, About("create directory", path));
    }
    return {};
  }

  Status Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) != 0) {
      return SystemError(errno,
                         fmt::format("cannot rename {:?} to {:?}", from, to));
    }
    return {};
  }

  Status SyncDirectory(const std::string& path) override {
    return SyncPath(path, O_RDONLY | O_DIRECTORY);
  }

  Status SyncFile(const std::string& path) override {
    return SyncPath(path, O_RDONLY);
  }

  Status RemoveAll(const std::string& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error) {
      return SystemError(error.value(), About("remove", path));
    }
    return {};
  }
};

struct RegularFile {
  Fd fd;
  size_t size_bytes = 0;
};

// O_NONBLOCK: a FIFO without a writer is refused below, not waited for.
Result<RegularFile> OpenRegular(const std::string& path) {
  RegularFile file{Fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC))};
  if (file.fd.get() < 0) {
    return SystemError(errno, About("open", path));
  }
  struct stat info = {};
  if (fstat(file.fd.get(), &info) != 0) {
    return SystemError(errno, About("stat", path));
  }
  if (!S_ISREG(info.st_mode)) {
    return InvalidArgument("{:?} is not a regular file", path);
  }
  file.size_bytes = static_cast<size_t>(info.st_size);
  return file;
}

}  // namespace

FileSystem& PosixFileSystem() {
  static RealFileSystem file_system;
  return file_system;
}

Result<MappedFile> MappedFile::Open(const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(file, OpenRegular(path));
  const size_t size = file.size_bytes;
  if (size == 0) {
    return MappedFile(path, nullptr, 0);
  }
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd.get(), 0);
  if (data == MAP_FAILED) {
    return SystemError(errno, About("map", path));
  }
  return MappedFile(path, static_cast<const std::byte*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    munmap(const_cast<std::byte*>(data_), size_);
  }
}

bool Exists(const std::string& path) {
  struct stat status = {};
  return lstat(path.c_str(), &status) == 0;
}

// Not by mapping it: a read error is an Error here, and SIGBUS there.
Result<std::vector<std::byte>> ReadWholeFile(const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(file, OpenRegular(path));
  // One byte more than it had tells its end from a read error. What it grows
  // by meanwhile is left out.
  std::vector<std::byte> bytes(file.size_bytes + 1);
  size_t end = 0;
  while (end < bytes.size()) {
    const ssize_t got = pread(file.fd.get(), bytes.data() + end,
                              bytes.size() - end, static_cast<off_t>(end));
    if (got < 0 && errno != EINTR) {
      return SystemError(errno, About("read", path));
    }
    if (got == 0) {
      break;
    }
    end += got > 0 ? static_cast<size_t>(got) : 0;
  }
  bytes.resize(std::min(end, file.size_bytes));
  return bytes;
}

Result<std::string> ReadWholeText(const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(bytes, ReadWholeFile(path));
  return ToText(bytes);
}

Status WriteWholeFile(FileSystem& files, const std::string& path,
                      std::span<const std::byte> bytes) {
  CLEW_ASSIGN_OR_RETURN(file, files.Create(path));
  CLEW_RETURN_IF_ERROR(file->Append(bytes));
  return file->Sync();
}

}  // namespace clew
