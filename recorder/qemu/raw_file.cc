#include "recorder/qemu/raw_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "recorder/qemu/own_descriptor.h"

namespace clew::recorder {

Result<RawFile> RawFile::Create(const std::string& path) {
  const int fd =
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) {
    return SystemError(errno, fmt::format("cannot create {:?}", path));
  }
  return RawFile(path, TakeDescriptor(fd));
}

RawFile::RawFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {
  buffer_.reserve(kBufferBytes);
}

RawFile::RawFile(RawFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_bytes_(other.size_bytes_),
      status_(std::move(other.status_)),
      buffer_(std::move(other.buffer_)) {}

RawFile& RawFile::operator=(RawFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
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
  if (CloseOwnDescriptor(std::exchange(fd_, -1)) != 0 && status_) {
    status_ = SystemError(errno, fmt::format("cannot close {:?}", path_));
  }
  return status_;
}

void RawFile::Abandon() {
  buffer_.clear();
  CloseOwnDescriptor(std::exchange(fd_, -1));
}

void RawFile::WriteOut(std::span<const std::byte> bytes) {
  while (!bytes.empty() && status_) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      status_ = SystemError(errno, fmt::format("cannot write {:?}", path_));
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
