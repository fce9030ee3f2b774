#ifndef CLEW_COMMON_LINUX_CALLS_MESSAGES_H_
#define CLEW_COMMON_LINUX_CALLS_MESSAGES_H_

#include "common/linux/syscall_row.h"

// Rows of the table of system calls: semaphores and message queues of System V,
// message queues of POSIX.

namespace clew::syscall_rows {

inline constexpr SyscallRow kMessageCalls[] = {
    CLEW_CALL(semget, "iii"),
    CLEW_CALL(semop, "ili", .blocking = Blocking::kSemaphores,
              .reads = {Counted(1, 2, kSembuf)}),
    CLEW_CALL(semctl, "iiil", .special = SpecialEffect::kRequest),
    CLEW_CALL(msgget, "ii"),
    CLEW_CALL(msgsnd, "illi", .blocking = Blocking::kMessageSend),
    CLEW_CALL(msgrcv, "illli", .blocking = Blocking::kMessageReceive,
              .special = SpecialEffect::kMessageReceive),
    CLEW_CALL(msgctl, "iil", .special = SpecialEffect::kRequest),
    CLEW_CALL(semtimedop, "ilil", .blocking = Blocking::kSemaphores,
              .reads = {Fixed(3, kTimespec), Counted(1, 2, kSembuf)}),
    CLEW_CALL(mq_open, "lihl", .reads = {Text(0)}),
    CLEW_CALL(mq_unlink, "l", .reads = {Text(0)}),
    CLEW_CALL(mq_timedsend, "illil", .blocking = Blocking::kQueueWritable,
              .reads = {Counted(1, 2), Fixed(4, kTimespec)}),
    CLEW_CALL(mq_timedreceive, "illll", .blocking = Blocking::kQueueReadable,
              .writes = {Result(1, 2), Fixed(3, 4)},
              .reads = {Fixed(4, kTimespec)}),
    CLEW_CALL(mq_notify, "il"),
    CLEW_CALL(mq_getsetattr, "ill", .writes = {Fixed(2, kQueueAttributes)}),
};

}  // namespace clew::syscall_rows

#endif  // CLEW_COMMON_LINUX_CALLS_MESSAGES_H_
