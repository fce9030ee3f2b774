#ifndef CLEW_COMMON_LINUX_SYSCALL_READS_H_
#define CLEW_COMMON_LINUX_SYSCALL_READS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

// Which memory of the program a system call reads through its pointers. The
// recorder and whoever follows a recording ask the same table, at the same
// moment: when the SYSCALL instruction has retired and nothing of the call has
// happened yet. What other threads change later does not count, though the
// kernel may read so late that it sees it.
//
// Not looked at is what depends on more than SyscallRow::reads can say: ioctl,
// fcntl, prctl, semctl, shmctl, msgctl, keyctl, bpf, the io_ calls, the set
// behind pselect6's last argument, sched_setattr, mq_open's attributes. Of
// execve and execveat only the path counts: the strings of arguments and
// environment may be redacted in a bundle.

namespace clew {

struct MemoryRange {
  uint64_t addr = 0;
  uint64_t size_bytes = 0;
  bool operator==(const MemoryRange&) const = default;
};

// The memory of a program at one moment.
class ProgramMemory {
 public:
  virtual ~ProgramMemory() = default;
  // All of it or false.
  virtual bool Read(uint64_t addr, std::span<std::byte> to) const = 0;
};

// Of one call; what lies behind is left out.
inline constexpr uint64_t kSyscallReadBytesMax = 64u << 20;

// What the call reads, in the order of its row: structures come before what
// they point to. Empty for calls that read nothing, and for those of which the
// table does not say. Ranges may be unreadable; behind a structure that is,
// nothing is looked for.
std::vector<MemoryRange> ReadsOfSyscall(uint64_t number,
                                        const std::array<uint64_t, 6>& args,
                                        const ProgramMemory& memory);

// The digest of these ranges (docs/format/bundle.md, "inputs.pb"). nullopt:
// there are none, or not all of them are readable, so that the call has failed
// or stopped somewhere on the way.
std::optional<uint64_t> DigestOfReads(std::span<const MemoryRange> ranges,
                                      const ProgramMemory& memory);

}  // namespace clew

#endif  // CLEW_COMMON_LINUX_SYSCALL_READS_H_
