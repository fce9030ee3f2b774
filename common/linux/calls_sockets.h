#ifndef CLEW_COMMON_LINUX_CALLS_SOCKETS_H_
#define CLEW_COMMON_LINUX_CALLS_SOCKETS_H_

#include "common/linux/syscall_row.h"

// Rows of the table of system calls: calls on sockets.

namespace clew::syscall_rows {

inline constexpr SyscallRow kSocketCalls[] = {
    CLEW_CALL(socket, "iii"),
    CLEW_CALL(connect, "ili", .blocking = Blocking::kAlways,
              .reads = {Counted(1, 2)}),
    CLEW_CALL(accept, "ill", .blocking = Blocking::kReadable,
              .writes = {LengthAt(1, 2)}, .reads = {Length(2, 1)}),
    CLEW_CALL(sendto, "illili", .blocking = Blocking::kWritable,
              .reads = {Counted(1, 2), Counted(4, 5)},
              .output = SyscallOutput::kBuffer),
    CLEW_CALL(recvfrom, "illill", .blocking = Blocking::kReadable,
              .writes = {Result(1, 2), LengthAt(4, 5)},
              .reads = {Length(5, 4)}),
    CLEW_CALL(sendmsg, "ili", .blocking = Blocking::kWritable,
              .reads = {Message(1)}, .output = SyscallOutput::kMessage),
    CLEW_CALL(recvmsg, "ili", .blocking = Blocking::kReadable,
              .reads = {Header(1)}, .special = SpecialEffect::kReceiveMessage),
    CLEW_CALL(shutdown, "ii"),
    CLEW_CALL(bind, "ili", .reads = {Counted(1, 2)}),
    CLEW_CALL(listen, "ii"),
    CLEW_CALL(getsockname, "ill", .writes = {LengthAt(1, 2)},
              .reads = {Length(2, 1)}),
    CLEW_CALL(getpeername, "ill", .writes = {LengthAt(1, 2)},
              .reads = {Length(2, 1)}),
    CLEW_CALL(socketpair, "iiil", .writes = {Fixed(3, 8)}),
    CLEW_CALL(setsockopt, "iiili", .reads = {Counted(3, 4)}),
    CLEW_CALL(getsockopt, "iiill", .writes = {LengthAt(3, 4)},
              .reads = {Length(4, 3)}),
    CLEW_CALL(accept4, "illi", .blocking = Blocking::kReadable,
              .writes = {LengthAt(1, 2)}, .reads = {Length(2, 1)}),
    CLEW_CALL(recvmmsg, "iliil", .blocking = Blocking::kAlways,
              .reads = {Fixed(4, kTimespec)},
              .special = SpecialEffect::kReceiveMessages),
    CLEW_CALL(sendmmsg, "ilii", .blocking = Blocking::kWritable,
              .reads = {Messages(1, 2)},
              .special = SpecialEffect::kSendMessages),
};

}  // namespace clew::syscall_rows

#endif  // CLEW_COMMON_LINUX_CALLS_SOCKETS_H_
