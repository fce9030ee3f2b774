#ifndef CLEW_RECORDER_QEMU_CALLS_PROGRAM_DESCRIPTOR_H_
#define CLEW_RECORDER_QEMU_CALLS_PROGRAM_DESCRIPTOR_H_

#include <sys/stat.h>

#include <optional>
#include <string>

#include "common/os/fd.h"
#include "recorder/qemu/guest_memory.h"

namespace clew::recorder {

// A descriptor of the program's, to ask the kernel about what it stands for:
// the descriptor itself where the program is in this process, else a copy
// (pidfd_getfd(2)). What is asked of it has no effect on the program.
class ProgramDescriptor {
 public:
  ProgramDescriptor(const GuestMemory& program, int fd);

  // -1: the program has no such descriptor.
  int get() const { return fd_; }
  std::optional<struct stat> Stat() const;
  std::optional<struct stat> StatOfRegularFile() const;

 private:
  int fd_;
  Fd copy_;
};

// The path behind a descriptor of the program's, as the kernel names it; empty
// where there is none.
std::string PathOfDescriptor(const GuestMemory& program, int fd);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_CALLS_PROGRAM_DESCRIPTOR_H_
