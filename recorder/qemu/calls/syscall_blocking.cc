#include <asm/unistd_64.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "common/linux/futex_command.h"
#include "common/linux/request_table.h"
#include "recorder/qemu/calls/ipc_calls.h"
#include "recorder/qemu/calls/syscall_effects.h"

namespace clew::recorder {
namespace {

constexpr uint64_t kPipeAtomicBytes = 4096;  // PIPE_BUF

bool IsPlainFile(int fd) {
  struct stat info = {};
  return fstat(fd, &info) != 0 || S_ISREG(info.st_mode) ||
         S_ISDIR(info.st_mode) || S_ISBLK(info.st_mode);
}

bool PollsAs(int fd, short events) {
  pollfd entry = {.fd = fd, .events = events, .revents = 0};
  return poll(&entry, 1, 0) > 0;
}

bool WriteMayBlock(const SyscallCall& call) {
  const int fd = static_cast<int>(call.args[0]);
  if (IsPlainFile(fd)) {
    return false;
  }
  const bool small = call.row->output == SyscallOutput::kBuffer &&
                     call.args[2] <= kPipeAtomicBytes;
  return !small || !PollsAs(fd, POLLOUT);
}

// Whether something to read is not enough for it: it waits until there is all
// that it asks for.
bool WaitsForAll(const SyscallCall& call) {
  const bool by_message = call.number == __NR_recvmsg;
  return (by_message || call.number == __NR_recvfrom) &&
         (call.args[by_message ? 2 : 3] & MSG_WAITALL) != 0;
}

// A wait for another value returns at once, one for no bit or for a word that
// is not aligned fails.
bool FutexMayBlock(const SyscallCall& call, const GuestMemory& memory) {
  const FutexCall futex = ParseFutex(call.args);
  return futex.kind == FutexCall::Kind::kWait && futex.bitset != 0 &&
         futex.addr % sizeof(uint32_t) == 0 &&
         memory.Load<uint32_t>(futex.addr) == futex.value;
}

}  // namespace

bool MayBlock(const SyscallCall& call, const GuestMemory& memory) {
  if (call.row->effects != KnownEffects::kAll) {
    return false;  // it fails
  }
  const int fd = static_cast<int>(call.args[0]);
  switch (call.row->blocking) {
    case Blocking::kNever:
      return false;
    case Blocking::kReadable:
      return !IsPlainFile(fd) && (WaitsForAll(call) || !PollsAs(fd, POLLIN));
    case Blocking::kWritable:
      return WriteMayBlock(call);
    case Blocking::kAlways:
      return true;
    case Blocking::kFutex:
      return FutexMayBlock(call, memory);
    case Blocking::kFcntl:
      return RequestIn(call.args[1]) == F_SETLKW ||
             RequestIn(call.args[1]) == F_OFD_SETLKW;
    case Blocking::kPoll:
      return static_cast<int>(call.args[2]) != 0;
    case Blocking::kEpoll:
      return static_cast<int>(call.args[3]) != 0;
    case Blocking::kQueueReadable:
      return !PollsAs(fd, POLLIN);
    case Blocking::kQueueWritable:
      return !PollsAs(fd, POLLOUT);
    case Blocking::kSemaphores:
      return SemaphoresMayBlock(call, memory);
    case Blocking::kMessageSend:
      return MessageSendMayBlock(call);
    case Blocking::kMessageReceive:
      return MessageReceiveMayBlock(call);
  }
  return true;
}

FutexCall ParseFutex(const std::array<uint64_t, 6>& args) {
  using Kind = FutexCall::Kind;
  FutexCall call{.addr = args[0],
                 .addr2 = args[4],
                 .value = static_cast<uint32_t>(args[2]),
                 .value2 = static_cast<uint32_t>(args[3]),
                 .is_private = (args[1] & FUTEX_PRIVATE_FLAG) != 0};
  switch (FutexCommand(args[1])) {
    case FUTEX_WAIT_BITSET:
      call.bitset = static_cast<uint32_t>(args[5]);
      [[fallthrough]];
    case FUTEX_WAIT:
      call.kind = Kind::kWait;
      call.timed = args[3] != 0;
      break;
    case FUTEX_WAKE_BITSET:
      call.bitset = static_cast<uint32_t>(args[5]);
      [[fallthrough]];
    case FUTEX_WAKE:
      call.kind = Kind::kWake;
      break;
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
      call.kind = Kind::kRequeue;
      break;
    case FUTEX_WAKE_OP:
      call.kind = Kind::kWakeOp;
      break;
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
      call.kind = Kind::kLock;
      call.timed = args[3] != 0;
      break;
    case FUTEX_TRYLOCK_PI:
    case FUTEX_UNLOCK_PI:
      call.kind = Kind::kOwner;
      break;
    default:
      break;
  }
  return call;
}

}  // namespace clew::recorder
