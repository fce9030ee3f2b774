#include "recorder/qemu/calls/program_descriptor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace clew::recorder {
namespace {

std::string TargetOf(const std::string& link) {
  std::array<char, 4096> path;
  const ssize_t length = readlink(link.c_str(), path.data(), path.size());
  return length < 0 ? ""
                    : std::string(path.data(), static_cast<size_t>(length));
}

}  // namespace

ProgramDescriptor::ProgramDescriptor(const GuestMemory& program, int fd)
    : fd_(fd), is_own_(program.process() == 0) {
  if (is_own_) {
    thread_ = "/proc/thread-self";
    return;
  }
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator(
           fmt::format("/proc/{}/task", program.process()), error)) {
    thread_ = thread.path();
    if (!Path().empty()) {
      return;
    }
  }
}

std::string ProgramDescriptor::PathIn(const char* folder) const {
  return fmt::format("{}/{}/{}", thread_, folder, fd_);
}

std::optional<struct stat> ProgramDescriptor::Stat() const {
  struct stat info = {};
  const int status =
      is_own_ ? fstat(fd_, &info) : stat(PathIn("fd").c_str(), &info);
  return status == 0 ? std::optional(info) : std::nullopt;
}

std::optional<struct stat> ProgramDescriptor::StatOfRegularFile() const {
  const auto info = Stat();
  return info && S_ISREG(info->st_mode) ? info : std::nullopt;
}

off_t ProgramDescriptor::Position() const {
  if (is_own_) {
    return lseek(fd_, 0, SEEK_CUR);
  }
  return StatOfRegularFile() ? Info("pos:", 10) : -1;
}

int ProgramDescriptor::Flags() const {
  return is_own_ ? fcntl(fd_, F_GETFL) : static_cast<int>(Info("flags:", 8));
}

std::string ProgramDescriptor::Path() const { return TargetOf(PathIn("fd")); }

// A line of /proc/pid/fdinfo/fd, "flags:\t0100002". Source:
// proc_pid_fdinfo(5).
int64_t ProgramDescriptor::Info(const char* name, int base) const {
  std::ifstream file(PathIn("fdinfo"));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name)) {
      return std::strtoll(line.c_str() + std::string_view(name).size(), nullptr,
                          base);
    }
  }
  return -1;
}

}  // namespace clew::recorder
