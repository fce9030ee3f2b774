#include "recorder/qemu/raw_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "recorder/qemu/calls/own_descriptor.h"

namespace clew::recorder {

namespace {

// What an empty file costs a disk at least.
constexpr uint64_t kFileBytes = 4096;

}  // namespace

Result<RawFile> RawFile::Create(const std::string& path, SizeLimit* limit) {
  if (limit != nullptr && limit->dropped()) {
    return RawFile(path, -1, limit);
  }
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) {
    return SystemError(errno, fmt::format("cannot create {:?}", path));
  }
  if (limit != nullptr) {
    limit->Add(kFileBytes);
  }
  return RawFile(path, TakeDescriptor(fd), limit);
}

RawFile::RawFile(std::string path, int fd, SizeLimit* limit)
    : path_(std::move(path)), fd_(fd), limit_(limit) {
  buffer_.reserve(kBufferBytes);
}

RawFile::RawFile(RawFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      limit_(other.limit_),
      size_bytes_(other.size_bytes_),
      status_(std::move(other.status_)),
      buffer_(std::move(other.buffer_)) {}

RawFile& RawFile::operator=(RawFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(limit_, other.limit_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(status_, other.status_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

RawFile::~RawFile() {
  if (fd_ >= 0) {
    Flush();
    CloseOwnDescriptor(fd_);
  }
}

void RawFile::Append(std::span<const std::byte> bytes) {
  size_bytes_ += bytes.size();
  if (buffer_.size() + bytes.size() > kBufferBytes) {
    Flush();
  }
  if (bytes.size() >= kBufferBytes) {
    WriteOut(bytes);
    return;
  }
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void RawFile::AppendZeros(uint64_t count) {
  static constexpr std::array<std::byte, 4096> kZeros = {};
  while (count > 0) {
    const auto step = std::min<uint64_t>(count, kZeros.size());
    Append(std::span(kZeros).first(static_cast<size_t>(step)));
    count -= step;
  }
}

void RawFile::Flush() {
  WriteOut(buffer_);
  buffer_.clear();
}

Status RawFile::Close() {
  Flush();
  if (fd_ < 0) {
    return status_;
  }
  if (CloseOwnDescriptor(std::exchange(fd_, -1)) != 0 && status_) {
    status_ = SystemError(errno, fmt::format("cannot close {:?}", path_));
  }
  return status_;
}

void RawFile::Abandon() {
  buffer_.clear();
  if (fd_ >= 0) {
    CloseOwnDescriptor(std::exchange(fd_, -1));
  }
}

Status RawFile::BeginAnew() {
  buffer_.clear();
  limit_ = nullptr;
  size_bytes_ = 0;
  if (ftruncate(fd_, 0) != 0 || lseek(fd_, 0, SEEK_SET) != 0) {
    return SystemError(errno, fmt::format("cannot empty {:?}", path_));
  }
  return {};
}

// Gives the disk back what the file had.
bool RawFile::IsDropped() {
  if (limit_ == nullptr || !limit_->dropped()) {
    return false;
  }
  if (fd_ >= 0) {
    (void)!ftruncate(fd_, 0);  // what stays is within the limit
  }
  return true;
}

void RawFile::Fail(const Error& error) {
  if (limit_ != nullptr) {
    limit_->Drop(error.message);
  } else {
    status_ = std::unexpected(error);
  }
}

void RawFile::WriteOut(std::span<const std::byte> bytes) {
  if (limit_ != nullptr) {
    limit_->Add(bytes.size());
  }
  while (!IsDropped() && !bytes.empty() && status_) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      Fail(SystemError(errno, fmt::format("cannot write {:?}", path_)).error());
    } else if (written > 0) {
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
  }
}

RawFileSink::RawFileSink(RawFile file)
    : file_(std::move(file)), room_(RawFile::kBufferBytes) {}

std::span<uint8_t> RawFileSink::Exchange(size_t used_bytes) {
  file_.Append(std::as_bytes(std::span(room_).first(used_bytes)));
  return room_;
}

}  // namespace clew::recorder
