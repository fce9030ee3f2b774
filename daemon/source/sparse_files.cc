#include "daemon/source/sparse_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/os/fd.h"

namespace clew::daemon {
namespace {

constexpr size_t kBlockBytes = 4096;

class SparseFile final : public WritableFile {
 public:
  SparseFile(Fd fd, std::string path)
      : fd_(std::move(fd)), path_(std::move(path)) {}

  Status Append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const auto block = bytes.first(std::min(bytes.size(), kBlockBytes));
      const bool zeros = std::ranges::all_of(
          block, [](std::byte byte) { return byte == std::byte{0}; });
      if (!zeros && pwrite(fd_.get(), block.data(), block.size(),
                           static_cast<off_t>(size_)) !=
                        static_cast<ssize_t>(block.size())) {
        return SystemError(errno, fmt::format("cannot write {:?}", path_));
      }
      size_ += block.size();
      bytes = bytes.subspan(block.size());
    }
    return {};
  }

  Status Sync() override {
    if (ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0 ||
        fsync(fd_.get()) != 0) {
      return SystemError(errno, fmt::format("cannot sync {:?}", path_));
    }
    return {};
  }

 private:
  Fd fd_;
  std::string path_;
  uint64_t size_ = 0;
};

}  // namespace

Result<std::unique_ptr<WritableFile>> SparseFiles::Create(
    const std::string& path) {
  Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd.is_open()) {
    return SystemError(errno, fmt::format("cannot create {:?}", path));
  }
  return std::make_unique<SparseFile>(std::move(fd), path);
}

}  // namespace clew::daemon
