#include "recorder/qemu/ipc_calls.h"

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#include <cerrno>
#include <cstring>
#include <optional>

namespace clew::recorder {
namespace {

// linux/sem.h, asm/sembuf.h, linux/msg.h, asm/msgbuf.h, linux/shm.h,
// asm/shmbuf.h for x86-64; glibc's structures are the kernel's here.
constexpr uint64_t kSemaphoreStateBytes = sizeof(semid_ds);
constexpr uint64_t kQueueStateBytes = sizeof(msqid_ds);
constexpr uint64_t kSegmentStateBytes = sizeof(shmid_ds);
static_assert(kSemaphoreStateBytes == 104 && kQueueStateBytes == 120 &&
              kSegmentStateBytes == 112);
constexpr uint64_t kSemaphoreLimitsBytes = sizeof(seminfo);
constexpr uint64_t kQueueLimitsBytes = sizeof(msginfo);
constexpr uint64_t kSegmentLimitsBytes = sizeof(shminfo);
constexpr uint64_t kSegmentUseBytes = sizeof(shm_info);
static_assert(kSegmentLimitsBytes == 72 && kSegmentUseBytes == 48);
// The command of old programs may say that its structures are the new ones.
constexpr uint64_t kIpc64 = 0x100;

int IdOf(const SyscallCall& call) { return static_cast<int>(call.args[0]); }

std::optional<msqid_ds> QueueState(int id) {
  msqid_ds state = {};
  return msgctl(id, IPC_STAT, &state) == 0 ? std::optional(state)
                                           : std::nullopt;
}

// semctl(2) wants its argument in a union that the caller defines.
union SemaphoreArgument {
  semid_ds* state;
};

std::optional<uint64_t> CountSemaphores(int id) {
  semid_ds state = {};
  const SemaphoreArgument argument = {.state = &state};
  return semctl(id, 0, IPC_STAT, argument) == 0
             ? std::optional<uint64_t>(state.sem_nsems)
             : std::nullopt;
}

void Add(uint64_t addr, uint64_t size_bytes, std::vector<MemoryRange>& ranges) {
  if (addr != 0 && size_bytes > 0) {
    ranges.push_back({addr, size_bytes});
  }
}

}  // namespace

// Of several operations none happens before all can: not looked into.
bool SemaphoresMayBlock(const SyscallCall& call, const GuestMemory& memory) {
  const auto operation = memory.Load<sembuf>(call.args[1]);
  if (!operation.has_value() || call.args[2] != 1) {
    return operation.has_value();
  }
  const int value = semctl(IdOf(call), operation->sem_num, GETVAL);
  if ((operation->sem_flg & IPC_NOWAIT) != 0 || value < 0) {
    return false;  // it fails, as GETVAL did
  }
  return operation->sem_op == 0 ? value != 0 : value + operation->sem_op < 0;
}

bool MessageSendMayBlock(const SyscallCall& call) {
  const auto queue = QueueState(IdOf(call));
  if ((call.args[3] & IPC_NOWAIT) != 0) {
    return false;
  }
  return !queue.has_value() ||
         queue->__msg_cbytes + call.args[2] > queue->msg_qbytes ||
         queue->msg_qnum >= queue->msg_qbytes;
}

// Whether one of a wanted type is there, only taking it would tell.
bool MessageReceiveMayBlock(const SyscallCall& call) {
  const auto queue = QueueState(IdOf(call));
  const bool any_type = call.args[3] == 0;
  if ((call.args[4] & IPC_NOWAIT) != 0) {
    return false;
  }
  return !queue.has_value() || queue->msg_qnum == 0 || !any_type;
}

void AddSemaphoreControl(const SyscallCall& call,
                         std::vector<MemoryRange>& ranges) {
  const uint64_t argument = call.args[3];
  switch (call.args[2] & ~kIpc64 & UINT32_MAX) {
    case GETALL:
      return Add(argument,
                 CountSemaphores(IdOf(call)).value_or(0) * sizeof(uint16_t),
                 ranges);
    case IPC_STAT:
    case SEM_STAT:
    case SEM_STAT_ANY:
      return Add(argument, kSemaphoreStateBytes, ranges);
    case IPC_INFO:
    case SEM_INFO:
      return Add(argument, kSemaphoreLimitsBytes, ranges);
    default:
      return;
  }
}

void AddMessageControl(const SyscallCall& call,
                       std::vector<MemoryRange>& ranges) {
  switch (call.args[1] & ~kIpc64 & UINT32_MAX) {
    case IPC_STAT:
    case MSG_STAT:
    case MSG_STAT_ANY:
      return Add(call.args[2], kQueueStateBytes, ranges);
    case IPC_INFO:
    case MSG_INFO:
      return Add(call.args[2], kQueueLimitsBytes, ranges);
    default:
      return;
  }
}

void AddSharedMemoryControl(const SyscallCall& call,
                            std::vector<MemoryRange>& ranges) {
  switch (call.args[1] & ~kIpc64 & UINT32_MAX) {
    case IPC_STAT:
    case SHM_STAT:
    case SHM_STAT_ANY:
      return Add(call.args[2], kSegmentStateBytes, ranges);
    case IPC_INFO:
      return Add(call.args[2], kSegmentLimitsBytes, ranges);
    case SHM_INFO:
      return Add(call.args[2], kSegmentUseBytes, ranges);
    default:
      return;
  }
}

Status AddSharedMemory(const SyscallCall& call, uint64_t addr,
                       std::vector<MemoryRange>& ranges) {
  shmid_ds state = {};
  if (shmctl(IdOf(call), IPC_STAT, &state) != 0) {
    return Unsupported(
        "shmat of segment {}: its size is not known ({}); let it be read by "
        "this user",
        IdOf(call), std::strerror(errno));
  }
  Add(addr, RoundUpToPage(state.shm_segsz), ranges);
  return {};
}

}  // namespace clew::recorder
