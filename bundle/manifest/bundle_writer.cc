#include "bundle/manifest/bundle_writer.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "common/file.h"
#include "common/lock_file.h"

namespace clew::bundle {
namespace {

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
