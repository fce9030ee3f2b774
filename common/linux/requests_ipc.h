#ifndef CLEW_COMMON_LINUX_REQUESTS_IPC_H_
#define CLEW_COMMON_LINUX_REQUESTS_IPC_H_

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

#include "common/linux/request_row.h"

// Rows of the table of requests: commands of semctl, msgctl and shmctl. On
// x86-64 none has IPC_64: the kernel refuses it. Sources: linux/sem.h,
// asm/sembuf.h, linux/msg.h, asm/msgbuf.h, linux/shm.h, asm/shmbuf.h.

namespace clew::request_rows {

// glibc's structures are the kernel's here.
inline constexpr uint16_t kSemaphoreState = sizeof(semid_ds);
inline constexpr uint16_t kQueueState = sizeof(msqid_ds);
inline constexpr uint16_t kSegmentState = sizeof(shmid_ds);
static_assert(kSemaphoreState == 104 && kQueueState == 120 &&
              kSegmentState == 112);
inline constexpr uint16_t kSemaphoreLimits = sizeof(seminfo);
inline constexpr uint16_t kQueueLimits = sizeof(msginfo);
inline constexpr uint16_t kSegmentLimits = sizeof(shminfo);
inline constexpr uint16_t kSegmentUse = sizeof(shm_info);
static_assert(kSemaphoreLimits == 40 && kQueueLimits == 32 &&
              kSegmentLimits == 72 && kSegmentUse == 48);
inline constexpr uint16_t kSemaphoreValue = sizeof(unsigned short);

inline constexpr RequestRow kSemctlRequests[] = {
    CLEW_REQUEST(IPC_RMID, "i-i"),
    CLEW_REQUEST(IPC_SET, "i-il"),
    CLEW_REQUEST(IPC_STAT, "i-il", .bytes = kSemaphoreState),
    CLEW_REQUEST(IPC_INFO, "i-il", .bytes = kSemaphoreLimits),
    CLEW_REQUEST(GETPID, "iii"),
    CLEW_REQUEST(GETVAL, "iii"),
    CLEW_REQUEST(GETALL, "i-il", .bytes = kSemaphoreValue,
                 .extent = RequestExtent::kSemaphores),
    CLEW_REQUEST(GETNCNT, "iii"),
    CLEW_REQUEST(GETZCNT, "iii"),
    CLEW_REQUEST(SETVAL, "iiii"),
    CLEW_REQUEST(SETALL, "i-il"),
    CLEW_REQUEST(SEM_STAT, "i-il", .bytes = kSemaphoreState),
    CLEW_REQUEST(SEM_INFO, "i-il", .bytes = kSemaphoreLimits),
    CLEW_REQUEST(SEM_STAT_ANY, "i-il", .bytes = kSemaphoreState),
};

inline constexpr RequestRow kMsgctlRequests[] = {
    CLEW_REQUEST(IPC_RMID, "ii"),
    CLEW_REQUEST(IPC_SET, "iil"),
    CLEW_REQUEST(IPC_STAT, "iil", .bytes = kQueueState),
    CLEW_REQUEST(IPC_INFO, "iil", .bytes = kQueueLimits),
    CLEW_REQUEST(MSG_STAT, "iil", .bytes = kQueueState),
    CLEW_REQUEST(MSG_INFO, "iil", .bytes = kQueueLimits),
    CLEW_REQUEST(MSG_STAT_ANY, "iil", .bytes = kQueueState),
};

inline constexpr RequestRow kShmctlRequests[] = {
    CLEW_REQUEST(IPC_RMID, "ii"),
    CLEW_REQUEST(IPC_SET, "iil"),
    CLEW_REQUEST(IPC_STAT, "iil", .bytes = kSegmentState),
    CLEW_REQUEST(IPC_INFO, "iil", .bytes = kSegmentLimits),
    CLEW_REQUEST(SHM_LOCK, "ii"),
    CLEW_REQUEST(SHM_UNLOCK, "ii"),
    CLEW_REQUEST(SHM_STAT, "iil", .bytes = kSegmentState),
    CLEW_REQUEST(SHM_INFO, "iil", .bytes = kSegmentUse),
    CLEW_REQUEST(SHM_STAT_ANY, "iil", .bytes = kSegmentState),
};

}  // namespace clew::request_rows

#endif  // CLEW_COMMON_LINUX_REQUESTS_IPC_H_
