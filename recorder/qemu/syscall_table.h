#ifndef CLEW_RECORDER_QEMU_SYSCALL_TABLE_H_
#define CLEW_RECORDER_QEMU_SYSCALL_TABLE_H_

#include <array>
#include <cstdint>

namespace clew::recorder {

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

// How many bytes the kernel writes at a pointer argument, if that is not null
// and the call succeeded.
enum class Size : uint8_t {
  kNone,
  kFixed,       // `bytes`
  kResult,      // result * `bytes`
  kArg,         // argument `other` * `bytes`
  kLengthAt,    // the smaller of the 32-bit length at argument `other` before
                // and after the call; the length itself is written too
  kVector,      // an iovec[argument `other`] takes `result` bytes
  kFdSet,       // an fd_set of argument `other` bits
  kOnInterrupt  // `bytes`, but only if the result is -EINTR
};

struct Written {
  uint8_t arg = 0;
  Size size = Size::kNone;
  uint16_t bytes = 0;
  uint8_t other = 0;
};

// What the call reads from the program as output.
enum class Output : uint8_t {
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

// Calls whose effects a table row cannot say; syscall_effects.cc has each.
enum class Special : uint8_t {
  kNone,
  kIoctl,
  kFcntl,
  kMmap,
  kClone,
  kFutex,
  kPrctl,
  kArchPrctl,
  kReceiveMessage,
  kReceiveMessages,
  kSendMessages,
  kFailsOnly,  // known as long as it fails (ENOSYS); else refused
  kSemaphoreControl,
  kMessageControl,
  kMessageReceive,  // argument 1: a type, then `result` bytes
  kSharedMemory,    // shmat: all of the segment, at `result`
};

struct SyscallRule {
  uint64_t number = 0;
  Blocking blocking = Blocking::kNever;
  std::array<Written, 4> writes = {};
  Output output = Output::kNone;
  Special special = Special::kNone;
  FileChange file_change = FileChange::kNone;
};

// nullptr: the recorder does not know what the call does and must refuse it.
const SyscallRule* FindSyscall(uint64_t number);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_SYSCALL_TABLE_H_
