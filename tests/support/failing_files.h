#ifndef CLEW_TESTS_SUPPORT_FAILING_FILES_H_
#define CLEW_TESTS_SUPPORT_FAILING_FILES_H_

#include <cerrno>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "common/os/file.h"

namespace clew::test {

// The real file system, whose operations fail, as on a full disk, after the
// first `works`.
class FailingFiles final : public FileSystem {
 public:
  explicit FailingFiles(int works) : left_(works) {}

  Result<std::unique_ptr<WritableFile>> Create(
      const std::string& path) override {
    CLEW_RETURN_IF_ERROR(Spend());
    CLEW_ASSIGN_OR_RETURN(file, PosixFileSystem().Create(path));
    return std::make_unique<File>(*this, std::move(file));
  }
  Status CreateDirectory(const std::string& path) override {
    CLEW_RETURN_IF_ERROR(Spend());
    return PosixFileSystem().CreateDirectory(path);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    CLEW_RETURN_IF_ERROR(Spend());
    return PosixFileSystem().Rename(from, to);
  }
  Status SyncDirectory(const std::string& path) override {
    CLEW_RETURN_IF_ERROR(Spend());
    return PosixFileSystem().SyncDirectory(path);
  }
  Status SyncFile(const std::string& path) override {
    CLEW_RETURN_IF_ERROR(Spend());
    return PosixFileSystem().SyncFile(path);
  }
  Status RemoveAll(const std::string& path) override {
    CLEW_RETURN_IF_ERROR(Spend());
    return PosixFileSystem().RemoveAll(path);
  }

 private:
  class File final : public WritableFile {
   public:
    File(FailingFiles& files, std::unique_ptr<WritableFile> file)
        : files_(files), file_(std::move(file)) {}
    Status Append(std::span<const std::byte> bytes) override {
      CLEW_RETURN_IF_ERROR(files_.Spend());
      return file_->Append(bytes);
    }
    Status Sync() override {
      CLEW_RETURN_IF_ERROR(files_.Spend());
      return file_->Sync();
    }

   private:
    FailingFiles& files_;
    std::unique_ptr<WritableFile> file_;
  };

  Status Spend() {
    if (left_-- <= 0) {
      return SystemError(ENOSPC, "no space in this test");
    }
    return {};
  }
  int left_;
};

}  // namespace clew::test

#endif  // CLEW_TESTS_SUPPORT_FAILING_FILES_H_
