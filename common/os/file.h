#ifndef CLEW_COMMON_OS_FILE_H_
#define CLEW_COMMON_OS_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"

namespace clew {

// The seam for everything that must survive a crash: a test replaces it to let
// the k-th operation fail. Every message names the path and the cause.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  [[nodiscard]] virtual Status Append(std::span<const std::byte> bytes) = 0;
  // Everything appended so far is on stable storage afterwards.
  [[nodiscard]] virtual Status Sync() = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // Creates or truncates.
  [[nodiscard]] virtual Result<std::unique_ptr<WritableFile>> Create(
      const std::string& path) = 0;
  [[nodiscard]] virtual Status CreateDirectory(const std::string& path) = 0;
  [[nodiscard]] virtual Status Rename(const std::string& from,
                                      const std::string& to) = 0;
  // Makes the names in a directory durable.
  [[nodiscard]] virtual Status SyncDirectory(const std::string& path) = 0;
  // Syncs an existing file (written by another process) to stable storage.
  [[nodiscard]] virtual Status SyncFile(const std::string& path) = 0;
  // Removes a file or a whole tree; absent is fine.
  [[nodiscard]] virtual Status RemoveAll(const std::string& path) = 0;
};

// The real file system. Lives as long as the program. What it creates is the
// user's alone (0600, 0700): a recording has what a program had in memory.
FileSystem& PosixFileSystem();

// A whole file mapped read-only; moves, unmaps when destroyed.
class MappedFile {
 public:
  [[nodiscard]] static Result<MappedFile> Open(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, const std::byte* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Something has that name, were it a link that leads nowhere.
bool Exists(const std::string& path);

[[nodiscard]] Result<std::vector<std::byte>> ReadWholeFile(
    const std::string& path);
// The same as text, whatever its bytes are.
[[nodiscard]] Result<std::string> ReadWholeText(const std::string& path);
[[nodiscard]] Status WriteWholeFile(FileSystem& files, const std::string& path,
                                    std::span<const std::byte> bytes);

}  // namespace clew

#endif  // CLEW_COMMON_OS_FILE_H_
