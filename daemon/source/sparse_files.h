#ifndef CLEW_DAEMON_SOURCE_SPARSE_FILES_H_
#define CLEW_DAEMON_SOURCE_SPARSE_FILES_H_

#include <memory>
#include <string>

#include "common/os/file.h"

namespace clew::daemon {

// PosixFileSystem, but files that are made have holes where whole blocks of
// zeros are appended: a stranger's file may be a hole of any size, and must not
// cost more disk than it takes there.
class SparseFiles final : public FileSystem {
 public:
  Result<std::unique_ptr<WritableFile>> Create(
      const std::string& path) override;
  Status CreateDirectory(const std::string& path) override {
    return PosixFileSystem().CreateDirectory(path);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return PosixFileSystem().Rename(from, to);
  }
  Status SyncDirectory(const std::string& path) override {
    return PosixFileSystem().SyncDirectory(path);
  }
  Status SyncFile(const std::string& path) override {
    return PosixFileSystem().SyncFile(path);
  }
  Status RemoveAll(const std::string& path) override {
    return PosixFileSystem().RemoveAll(path);
  }
};

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_SOURCE_SPARSE_FILES_H_
