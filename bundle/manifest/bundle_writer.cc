#include "bundle/manifest/bundle_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "common/file.h"

namespace clew::bundle {
namespace {

// The lock lives beside the bundle's files and goes with its holder.
Result<int> Lock(const std::string& folder) {
  const std::string path = folder + "/lock";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    return SystemError(errno, fmt::format("cannot create {:?}", path));
  }
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    close(fd);
    return InvalidArgument("{:?} is being written by another recorder", folder);
  }
  return fd;
}

std::string Absolute(const std::string& path) {
  std::error_code error;
  std::string absolute = std::filesystem::absolute(path, error).string();
  while (absolute.size() > 1 && absolute.back() == '/') {
    absolute.pop_back();
  }
  return error ? path : absolute;
}

}  // namespace

Result<BundleWriter> BundleWriter::Create(FileSystem& files,
                                          const std::string& out) {
  const std::string path = Absolute(out);
  const std::string partial = path + ".partial";
  if (Exists(path)) {
    return InvalidArgument("{:?} exists; remove it or choose another name",
                           out);
  }
  if (Exists(partial)) {
    // A recorder died here, unless it still holds the lock.
    CLEW_ASSIGN_OR_RETURN(lock, Lock(partial));
    const Status removed = files.RemoveAll(partial);
    close(lock);
    CLEW_RETURN_IF_ERROR(removed);
  }
  CLEW_RETURN_IF_ERROR(files.CreateDirectory(partial));
  auto lock = Lock(partial);
  if (!lock) {
    (void)files.RemoveAll(partial);  // the first error is the one to report
    return std::unexpected(lock.error());
  }
  return BundleWriter(files, path, *lock);
}

BundleWriter::BundleWriter(FileSystem& files, std::string out, int lock_fd)
    : files_(files),
      out_(std::move(out)),
      partial_(out_ + ".partial"),
      lock_fd_(lock_fd) {}

BundleWriter::BundleWriter(BundleWriter&& other) noexcept
    : files_(other.files_),
      out_(std::move(other.out_)),
      partial_(std::move(other.partial_)),
      folders_(std::move(other.folders_)),
      lock_fd_(std::exchange(other.lock_fd_, -1)),
      published_(other.published_) {}

BundleWriter::~BundleWriter() {
  if (lock_fd_ < 0) {
    return;  // moved from
  }
  if (!published_) {
    (void)files_.RemoveAll(partial_);  // nobody is left to tell
  }
  close(lock_fd_);
}

Status BundleWriter::Write(const std::string& name,
                           std::span<const std::byte> bytes) {
  return WriteWholeFile(files_, partial_ + "/" + name, bytes);
}

Status BundleWriter::MakeFolder(const std::string& name) {
  CLEW_RETURN_IF_ERROR(files_.CreateDirectory(partial_ + "/" + name));
  folders_.push_back(partial_ + "/" + name);
  return {};
}

Status BundleWriter::Sync(const std::string& name) {
  return files_.SyncFile(partial_ + "/" + name);
}

Status BundleWriter::Publish() {
  CLEW_RETURN_IF_ERROR(files_.RemoveAll(partial_ + "/lock"));
  for (const std::string& folder : folders_) {
    CLEW_RETURN_IF_ERROR(files_.SyncDirectory(folder));
  }
  CLEW_RETURN_IF_ERROR(files_.SyncDirectory(partial_));
  CLEW_RETURN_IF_ERROR(files_.Rename(partial_, out_));
  published_ = true;
  return files_.SyncDirectory(
      std::filesystem::path(out_).parent_path().string());
}

}  // namespace clew::bundle
