#include "bundle/manifest/bundle_writer.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "common/os/file.h"
#include "common/os/lock_file.h"

namespace clew::bundle {
namespace {

constexpr size_t kCopyBytes = size_t{1} << 20;

// The lock lives beside the bundle's files and goes with its holder.
Result<Fd> Lock(const std::string& folder) {
  CLEW_ASSIGN_OR_RETURN(lock, TryLockFile(folder + "/lock"));
  if (!lock.is_open()) {
    return InvalidArgument("{:?} is being written by another recorder", folder);
  }
  return std::move(lock);
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
    lock.Close();
    CLEW_RETURN_IF_ERROR(removed);
  }
  CLEW_RETURN_IF_ERROR(files.CreateDirectory(partial));
  auto lock = Lock(partial);
  if (!lock) {
    (void)files.RemoveAll(partial);  // the first error is the one to report
    return std::unexpected(lock.error());
  }
  return BundleWriter(files, path, *std::move(lock));
}

BundleWriter::BundleWriter(FileSystem& files, std::string out, Fd lock)
    : files_(files),
      out_(std::move(out)),
      partial_(out_ + ".partial"),
      lock_(std::move(lock)) {}

BundleWriter::~BundleWriter() {
  const bool moved_from = !lock_.is_open();
  if (!moved_from && !published_) {
    (void)files_.RemoveAll(partial_);  // nobody is left to tell
  }
}

Status BundleWriter::Write(const std::string& name,
                           std::span<const std::byte> bytes) {
  return WriteWholeFile(files_, partial_ + "/" + name, bytes);
}

Result<uint64_t> BundleWriter::CopyFrom(const std::string& name, int fd,
                                        const std::string& source,
                                        uint64_t total,
                                        ProgressSink* progress) {
  CLEW_ASSIGN_OR_RETURN(file, files_.Create(partial_ + "/" + name));
  std::vector<std::byte> buffer(kCopyBytes);
  uint64_t copied = 0;
  while (true) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return SystemError(errno, fmt::format("cannot read {}", source));
    }
    if (got == 0) {
      break;
    }
    const auto bytes = static_cast<size_t>(got);
    CLEW_RETURN_IF_ERROR(file->Append(std::span(buffer).first(bytes)));
    copied += bytes;
    if (progress != nullptr) {
      progress->Update(copied, total);
    }
  }
  CLEW_RETURN_IF_ERROR(file->Sync());
  return copied;
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
  return SyncOut();
}

Status BundleWriter::PublishInner(const std::string& name) {
  CLEW_RETURN_IF_ERROR(files_.Rename(partial_ + "/" + name, out_));
  return SyncOut();
}

// Makes the new name durable.
Status BundleWriter::SyncOut() {
  return files_.SyncDirectory(
      std::filesystem::path(out_).parent_path().string());
}

}  // namespace clew::bundle
