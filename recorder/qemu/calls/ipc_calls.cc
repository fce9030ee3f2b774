#include "recorder/qemu/calls/ipc_calls.h"

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#include <cerrno>
#include <cstring>
#include <optional>

namespace clew::recorder {
namespace {

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

uint64_t CountSemaphores(const SyscallCall& call) {
  semid_ds state = {};
  const SemaphoreArgument argument = {.state = &state};
  return semctl(IdOf(call), 0, IPC_STAT, argument) == 0 ? state.sem_nsems : 0;
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
  ranges.push_back({addr, RoundUpToPage(state.shm_segsz)});
  return {};
}

}  // namespace clew::recorder
