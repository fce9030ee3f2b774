#include "recorder/images/image_file.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "common/build_id.h"
#include "common/os/maps_path.h"

namespace clew::recorder {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;
// O_NONBLOCK: a FIFO without a writer is refused, not waited for.
constexpr int kOpenFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

std::unexpected<Error> CannotOpen(const std::string& path) {
  return SystemError(errno, fmt::format("cannot open {:?}", path));
}

// Reads all of `out`, or says that the file has not so much.
bool ReadAt(int fd, uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t got =
        pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return false;
    }
    offset += static_cast<uint64_t>(got);
    out = out.subspan(static_cast<size_t>(got));
  }
  return true;
}

// The path that the kernel gives for a mapping has no links in it, so a link
// there was put there later. (openat2(2))
Result<Fd> OpenBelowRoot(const std::string& root, const std::string& path) {
  const Fd folder(open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  open_how how = {};
  how.flags = kOpenFlags;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  Fd file(folder.is_open()
              ? static_cast<int>(syscall(SYS_openat2, folder.get(),
                                         path.c_str(), &how, sizeof how))
              : -1);
  if (!file.is_open()) {
    return CannotOpen(root + path);
  }
  return file;
}

bool IsThat(int fd, const MappedFileName& name) {
  struct stat info = {};
  return fstat(fd, &info) == 0 && info.st_ino == name.inode &&
         fmt::format("{:02x}:{:02x}", major(info.st_dev), minor(info.st_dev)) ==
             name.device;
}

// Every folder on the way may be entered by anyone, none is a link.
Result<Fd> OpenForAnyone(const std::string& path) {
  Fd folder(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::istringstream parts(path);
  std::string part;
  while (folder.is_open() && std::getline(parts, part, '/')) {
    if (part.empty()) {
      continue;
    }
    const bool last = parts.eof();
    Fd next(openat(
        folder.get(), part.c_str(),
        O_NOFOLLOW | O_CLOEXEC | (last ? kOpenFlags : O_PATH | O_DIRECTORY)));
    struct stat info = {};
    if (!next.is_open() || fstat(next.get(), &info) != 0) {
      return CannotOpen(path);
    }
    if ((info.st_mode & (last ? S_IROTH : S_IXOTH)) == 0) {
      return InvalidArgument("{:?} may not be read by everybody", path);
    }
    folder = std::move(next);
  }
  return folder;
}

}  // namespace

bool FileUser::MayRead(const struct stat& info) const {
  if (user == 0) {
    return true;
  }
  if (info.st_uid == user) {
    return (info.st_mode & S_IRUSR) != 0;
  }
  const bool of_group = std::ranges::find(groups, info.st_gid) != groups.end();
  return (info.st_mode & (of_group ? S_IRGRP : S_IROTH)) != 0;
}

// "Uid:" and "Gid:" have real, effective, saved and file system ids.
// (proc_pid_status(5))
Result<FileUser> FileUserOf(const std::string& proc, int32_t process) {
  std::ifstream file(fmt::format("{}/{}/status", proc, process));
  FileUser user;
  int found = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    std::vector<uint32_t> ids;
    for (uint32_t id = 0; words >> id;) {
      ids.push_back(id);
    }
    if (key == "Uid:" && ids.size() == 4) {
      user.user = ids[3];
      ++found;
    } else if (key == "Gid:" && ids.size() == 4) {
      user.groups.push_back(ids[3]);
      ++found;
    } else if (key == "Groups:") {
      user.groups.insert(user.groups.end(), ids.begin(), ids.end());
    }
  }
  if (found != 2) {
    return InvalidArgument("there is no process {} any more", process);
  }
  return user;
}

Result<ImageFile> ImageFile::Take(Fd fd, const std::string& path) {
  struct stat info = {};
  if (fstat(fd.get(), &info) != 0) {
    return SystemError(errno, fmt::format("cannot stat {:?}", path));
  }
  if (!S_ISREG(info.st_mode)) {
    return InvalidArgument("{:?} is not a regular file", path);
  }
  std::array<std::byte, SELFMAG> magic = {};
  if (!ReadAt(fd.get(), 0, magic) ||
      std::memcmp(magic.data(), ELFMAG, SELFMAG) != 0) {
    return InvalidArgument("{:?} is no ELF file", path);
  }
  return ImageFile(std::move(fd), static_cast<uint64_t>(info.st_size));
}

Result<ImageFile> ImageFile::OfMapping(const std::string& proc, int32_t process,
                                       const MappedFileName& name) {
  const std::string folder = fmt::format("{}/{}", proc, process);
  Fd mapped(open(fmt::format("{}/map_files/{}", folder, name.range).c_str(),
                 kOpenFlags));
  if (mapped.is_open()) {
    return Take(std::move(mapped), name.path);
  }
  // In a mount namespace of its own the path is one of the process's root;
  // after chroot(2) alone it is still one of our root.
  for (const std::string& root : {folder + "/root", std::string("/")}) {
    auto file = OpenBelowRoot(root, name.path);
    if (file && IsThat(file->get(), name)) {
      return Take(std::move(*file), name.path);
    }
  }
  return InvalidArgument("{:?} does not lead to the mapped file any more",
                         name.path);
}

Result<ImageFile> ImageFile::AtPath(const std::string& path,
                                    ImageRights rights) {
  if (rights == ImageRights::kAnyone) {
    CLEW_ASSIGN_OR_RETURN(file, OpenForAnyone(path));
    return Take(std::move(file), path);
  }
  Fd file(open(path.c_str(), kOpenFlags));
  if (!file.is_open()) {
    return CannotOpen(path);
  }
  return Take(std::move(file), path);
}

bool ImageFile::IsReadableBy(const FileUser& user) const {
  struct stat info = {};
  return fstat(fd_.get(), &info) == 0 && user.MayRead(info);
}

std::vector<std::byte> ImageFile::BuildId() const {
  return BuildIdOf(
      [this](uint64_t offset, std::span<std::byte> out) {
        return ReadAt(fd_.get(), offset, out);
      },
      size_bytes_);
}

Result<bool> ImageFile::CopyTo(WritableFile& to) const {
  std::vector<std::byte> chunk(kChunkBytes);
  for (uint64_t done = 0; done < size_bytes_;) {
    const auto now = std::span(chunk).first(
        std::min<uint64_t>(chunk.size(), size_bytes_ - done));
    if (!ReadAt(fd_.get(), done, now)) {
      return false;
    }
    CLEW_RETURN_IF_ERROR(to.Append(now));
    done += now.size();
  }
  return true;
}

void HeldImages::Add(std::string_view path, ImageFile file) {
  auto build_id = file.BuildId();
  if (files_.size() < kFilesMax && Find(path, build_id) == nullptr) {
    files_.emplace(WithoutDeleted(path),
                   Held{std::move(build_id), std::move(file)});
  }
}

const ImageFile* HeldImages::Find(
    std::string_view path, const std::vector<std::byte>& build_id) const {
  const auto [begin, end] =
      files_.equal_range(std::string(WithoutDeleted(path)));
  for (auto at = begin; at != end; ++at) {
    if (build_id.empty() || at->second.build_id == build_id) {
      return &at->second.file;
    }
  }
  return nullptr;
}

}  // namespace clew::recorder
