#ifndef CLEW_COMMON_LINUX_SYSCALL_TABLE_H_
#define CLEW_COMMON_LINUX_SYSCALL_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

// The table of system calls of Linux 6.1 for x86-64: one row says all that is
// known about a call. The recorders, the follower and messages ask it.
//
//   calls_<area>.h  the rows           syscall_reads.h   what a call reads
//   syscall_row.h   how one is written argument_bits.h   what of its arguments
//   syscall_table.h finds a row                          counts
//   request_table.h what else depends on the request that a call makes
//
// Sources: arch/x86/entry/syscalls/syscall_64.tbl, include/linux/syscalls.h and
// the calls' manual pages. Numbers are the __NR_ of <asm/unistd_64.h>.

namespace clew {

// How much the recorders know of what a call does to the program.
enum class KnownEffects : uint8_t {
  kNone,        // nothing: such a call is refused, or recorded as not known
  kOfFailure,   // nothing is changed if it fails; a success is as kNone
  kNativeOnly,  // the row, on the kernel; QEMU 7.2 answers ENOSYS: kOfFailure
  kAll,         // the row
};

// Whether a call may wait for something that another thread, another process or
// time brings about.
enum class Blocking : uint8_t {
  kNever,
  kReadable,  // unless the descriptor in argument 0 is readable
  kWritable,  // unless the descriptor in argument 0 takes a page at once
  kAlways,
  kFutex,           // as the operation says
  kFcntl,           // F_SETLKW
  kPoll,            // unless the time limit in argument 2 is 0
  kEpoll,           // unless the time limit in argument 3 is 0
  kQueueReadable,   // unless the POSIX queue in argument 0 has a message
  kQueueWritable,   // unless it has room for one
  kSemaphores,      // unless one operation is asked for, and possible
  kMessageSend,     // unless the queue has room, or the call does not wait
  kMessageReceive,  // unless any message is wanted and there, or it does not
};

// How many bytes the kernel writes or reads at a pointer argument, if that is
// not null. It writes only if the call succeeds.
enum class Extent : uint8_t {
  kNone,
  // Written and read.
  kFixed,    // `bytes`
  kCounted,  // argument `other` * `bytes`
  kFdSet,    // an fd_set of argument 0 bits; the kernel reads fewer if the
             // process's table of descriptors has fewer places
  kVector,  // an iovec[argument `other`]: `result` bytes are written to what it
            // points to; it and all of that are read
  // Written only.
  kResult,       // result * `bytes`, but no more than argument `other` *
                 // `bytes`
  kLengthAt,     // the smaller of the 32-bit length at argument `other` before
                 // and after the call; the length itself is written too
  kOnInterrupt,  // `bytes`, but only if the result is -EINTR
  kPages,        // a byte for each page of argument `other` bytes
  kBits,         // words of 64 bits, for a bit fewer than argument `other`
  // Read only.
  kLength,    // `bytes`, if argument `other` is not null either
  kText,      // up to a NUL, which counts, too
  kMessage,   // a msghdr and all that it points to
  kHeader,    // a msghdr and its iovec[]: what is received says no contents
  kMessages,  // an mmsghdr[argument `other`], each as kMessage
  kFutex,     // `bytes`, if the operation has a time limit there
  kEpollCtl,  // `bytes`, unless an entry is deleted
};

// A pointer argument and how much of what it points to the kernel takes.
struct Pointee {
  uint8_t arg = 0;
  Extent extent = Extent::kNone;
  uint8_t other = 0;  // an argument
  uint16_t bytes = 0;
};

// What a call reads from the program as output.
enum class SyscallOutput : uint8_t {
  kNone,
  kBuffer,   // `result` bytes at argument 1
  kVector,   // `result` bytes from iovec at argument 1, argument 2 of them
  kMessage,  // `result` bytes from the iovec of the msghdr at argument 1
};

// How a call changes the contents of a file, `result` bytes of it.
enum class FileChange : uint8_t {
  kNone,
  kAtPosition,  // descriptor in argument 0, before its position afterwards
  kAtOffset,    // the same, at the offset in argument 3, if that is not -1
  kOfThird,     // descriptor in argument 2, before the offset that argument 3
                // points to, or its position where that is null
  kTruncated,   // argument 0, from the size in argument 1 on
  kAllocated,   // fallocate
};

// What a call writes where `writes` cannot say it. Each recorder has code for
// each.
enum class SpecialEffect : uint8_t {
  kNone,
  kRequest,  // what the row of the request says (request_table.h)
  kMmap,
  kClone,
  kFutex,
  kReceiveMessage,
  kReceiveMessages,
  kSendMessages,
  kMessageReceive,  // argument 1: a type, then `result` bytes
  kSharedMemory,    // shmat: all of the segment, at `result`
  kOtherMemory,     // process_vm_writev: the process may be the caller's own
};

inline constexpr size_t kSyscallArguments = 6;

struct SyscallRow {
  const char* name = nullptr;
  uint16_t number = 0;
  // One letter for each argument, by how many of its register's bits the kernel
  // looks at: l 64 (pointer, long, size_t), i 32 (int, descriptor, id),
  // h 16 (umode_t), b 8 (exit status), - none. Empty also where Linux 6.1 has
  // the number but no longer the call.
  char arguments[kSyscallArguments + 1] = "";
  KnownEffects effects = KnownEffects::kNone;
  Blocking blocking = Blocking::kNever;
  std::array<Pointee, 4> writes = {};
  // In this order: structures come before what they point to. Recordings have
  // digests of it: another order, or a range more, and old ones do not match.
  std::array<Pointee, 4> reads = {};
  SyscallOutput output = SyscallOutput::kNone;
  SpecialEffect special = SpecialEffect::kNone;
  FileChange file_change = FileChange::kNone;
};

// All rows, by ascending number.
std::span<const SyscallRow> AllSyscalls();

// nullptr for a number that Linux 6.1 does not have.
const SyscallRow* FindSyscall(uint64_t number);

// The number of the call that a SYSCALL with `rax` makes: the kernel looks at
// the lower half.
constexpr uint32_t SyscallNumber(uint64_t rax) {
  return static_cast<uint32_t>(rax);
}

// "futex", "read"; "syscall 999", "syscall -1" for a number that Linux 6.1 does
// not have.
std::string SyscallName(uint64_t number);

// Argument `index` of a call, as far as the kernel looks at it.
uint64_t SyscallArgument(const SyscallRow& row,
                         const std::array<uint64_t, kSyscallArguments>& args,
                         size_t index);

// Whether the call may sleep until another thread or the outside world acts, so
// that others run between its entry and its return, and see what it writes only
// after that. False for calls that wait and then only put out (write, sendmsg):
// of them nothing is seen at the return. Which calls wait, and when, is said in
// one column, SyscallRow::blocking.
bool SyscallMayBlock(uint64_t number);

}  // namespace clew

#endif  // CLEW_COMMON_LINUX_SYSCALL_TABLE_H_
