#ifndef CLEW_RECORDER_QEMU_CALLS_PROGRAM_DESCRIPTOR_H_
#define CLEW_RECORDER_QEMU_CALLS_PROGRAM_DESCRIPTOR_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "recorder/qemu/guest_memory.h"

namespace clew::recorder {

// A descriptor of the program's, to ask the kernel about what it stands for: by
// itself where the program is in this process, else by procfs. What is asked
// has no effect on the program.
class ProgramDescriptor {
 public:
  ProgramDescriptor(const GuestMemory& program, int fd);

  // Each tells nothing, -1 or "" where there is no such descriptor.
  std::optional<struct stat> Stat() const;
  std::optional<struct stat> StatOfRegularFile() const;
  off_t Position() const;  // also -1 of what has none
  int Flags() const;       // of open(2)
  // As the kernel names what is behind it.
  std::string Path() const;

 private:
  std::string PathIn(const char* folder) const;
  int64_t Info(const char* name, int base) const;

  int fd_;
  bool is_own_;
  // In procfs, of a thread of the program that has descriptors: one that has
  // ended, as the first may have, has none.
  std::string thread_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_CALLS_PROGRAM_DESCRIPTOR_H_
