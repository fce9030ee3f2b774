#ifndef CLEW_IMPORTER_INPUT_H_
#define CLEW_IMPORTER_INPUT_H_

#include <cstdint>
#include <string>
#include <utility>

#include "common/result.h"

namespace clew::importer {

// An open file to copy from; closed when destroyed.
class ImportInput {
 public:
  // Opens a file, standard input for "-", or the recording inside the folder
  // that `perf record --kcore` makes. Fails with kInvalidArgument if `path` is
  // another folder or a bundle.
  [[nodiscard]] static Result<ImportInput> Open(const std::string& path);

  ImportInput(ImportInput&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        path_(std::move(other.path_)),
        size_bytes_(other.size_bytes_),
        is_regular_(other.is_regular_) {}
  ImportInput& operator=(ImportInput&&) = delete;
  ~ImportInput();

  int fd() const { return fd_; }
  // For messages; of a regular file, where it is.
  const std::string& path() const { return path_; }
  uint64_t size_bytes() const { return size_bytes_; }  // 0: not known
  bool is_regular() const { return is_regular_; }

 private:
  ImportInput(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_;
  std::string path_;
  uint64_t size_bytes_ = 0;
  bool is_regular_ = false;
};

}  // namespace clew::importer

#endif  // CLEW_IMPORTER_INPUT_H_
