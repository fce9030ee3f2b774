#include "recorder/qemu/calls/program_descriptor.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

namespace clew::recorder {

ProgramDescriptor::ProgramDescriptor(const GuestMemory& program, int fd)
    : fd_(fd) {
  if (program.process() == 0) {
    return;
  }
  const Fd process(
      static_cast<int>(syscall(SYS_pidfd_open, program.process(), 0)));
  copy_ = Fd(static_cast<int>(syscall(SYS_pidfd_getfd, process.get(), fd, 0)));
  fd_ = copy_.get();
}

std::optional<struct stat> ProgramDescriptor::Stat() const {
  struct stat info = {};
  return fstat(fd_, &info) == 0 ? std::optional(info) : std::nullopt;
}

std::optional<struct stat> ProgramDescriptor::StatOfRegularFile() const {
  const auto info = Stat();
  return info && S_ISREG(info->st_mode) ? info : std::nullopt;
}

std::string PathOfDescriptor(const GuestMemory& program, int fd) {
  std::array<char, 4096> path;
  // Not /proc/self: that is the first thread's, which may have ended.
  const std::string of_whom = program.process() == 0
                                  ? "thread-self"
                                  : fmt::format("{}", program.process());
  const std::string link = fmt::format("/proc/{}/fd/{}", of_whom, fd);
  const ssize_t length = readlink(link.c_str(), path.data(), path.size());
  return length < 0 ? ""
                    : std::string(path.data(), static_cast<size_t>(length));
}

}  // namespace clew::recorder
