#ifndef CLEW_COMMON_LINUX_SYSCALL_ROW_H_
#define CLEW_COMMON_LINUX_SYSCALL_ROW_H_

#include <asm/unistd_64.h>
#include <linux/mqueue.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <utime.h>

#include "common/linux/syscall_table.h"

// How the rows in calls_<area>.h are written. A row is
//
//   CLEW_CALL(name, "widths of its arguments", .column = value, ...)
//
// with the columns in the order of SyscallRow; those left out say "none". The
// number and the name come from the one word, and widths are always there: no
// row can lack them.

#define CLEW_CALL(call, widths, ...) \
  {.name = #call,                    \
   .number = __NR_##call,            \
   .arguments = widths,              \
   .effects = KnownEffects::kAll __VA_OPT__(, ) __VA_ARGS__}
#define CLEW_CALL_NATIVE(call, widths, ...) \
  {.name = #call,                           \
   .number = __NR_##call,                   \
   .arguments = widths,                     \
   .effects = KnownEffects::kNativeOnly __VA_OPT__(, ) __VA_ARGS__}
#define CLEW_CALL_FAILING(call, widths, ...) \
  {.name = #call,                            \
   .number = __NR_##call,                    \
   .arguments = widths,                      \
   .effects = KnownEffects::kOfFailure __VA_OPT__(, ) __VA_ARGS__}
#define CLEW_CALL_UNKNOWN(call, widths, ...) \
  {.name = #call,                            \
   .number = __NR_##call,                    \
   .arguments = widths,                      \
   .effects = KnownEffects::kNone __VA_OPT__(, ) __VA_ARGS__}

namespace clew::syscall_rows {

// The kernel's structures for x86-64. Where glibc's is the same, it says how
// long it is.
inline constexpr uint16_t kEpollEvent = sizeof(epoll_event);
inline constexpr uint16_t kIovec = sizeof(iovec);
inline constexpr uint16_t kOffset = sizeof(loff_t);
inline constexpr uint16_t kPollfd = sizeof(pollfd);
inline constexpr uint16_t kQueueAttributes = sizeof(mq_attr);
inline constexpr uint16_t kQueuedSiginfo = 48;  // struct kernel_siginfo
inline constexpr uint16_t kRlimit = sizeof(rlimit);
inline constexpr uint16_t kRusage = sizeof(rusage);
inline constexpr uint16_t kSembuf = sizeof(sembuf);
inline constexpr uint16_t kSigaction = 32;  // struct kernel_sigaction
inline constexpr uint16_t kSigevent = sizeof(sigevent);
inline constexpr uint16_t kSiginfo = sizeof(siginfo_t);
inline constexpr uint16_t kSigstack = sizeof(stack_t);
inline constexpr uint16_t kStat = sizeof(struct stat);
inline constexpr uint16_t kStatfs = sizeof(struct statfs);
inline constexpr uint16_t kStatx = sizeof(struct statx);
inline constexpr uint16_t kSysinfo = sizeof(struct sysinfo);
inline constexpr uint16_t kTimex = sizeof(timex);
inline constexpr uint16_t kTimespec = sizeof(timespec);  // and a timeval
inline constexpr uint16_t kTms = sizeof(tms);
inline constexpr uint16_t kTwoTimespecs = 2 * kTimespec;  // an itimerspec, too
inline constexpr uint16_t kUtimbuf = sizeof(utimbuf);
inline constexpr uint16_t kUtsname = sizeof(utsname);

constexpr Pointee Fixed(uint8_t arg, uint16_t bytes) {
  return {.arg = arg, .extent = Extent::kFixed, .bytes = bytes};
}
constexpr Pointee Counted(uint8_t arg, uint8_t other, uint16_t bytes = 1) {
  return {arg, Extent::kCounted, other, bytes};
}
constexpr Pointee FdSet(uint8_t arg) {
  return {.arg = arg, .extent = Extent::kFdSet};
}
constexpr Pointee Vector(uint8_t arg, uint8_t other) {
  return {.arg = arg, .extent = Extent::kVector, .other = other};
}
// As many bytes as the result says, or structures of `bytes` each. A call may
// say more than it is allowed to write by argument `limit`: getxattr of no
// buffer, recv with MSG_TRUNC.
constexpr Pointee Result(uint8_t arg, uint8_t limit, uint16_t bytes = 1) {
  return {arg, Extent::kResult, limit, bytes};
}
constexpr Pointee LengthAt(uint8_t arg, uint8_t other) {
  return {.arg = arg, .extent = Extent::kLengthAt, .other = other};
}
constexpr Pointee OnInterrupt(uint8_t arg, uint16_t bytes) {
  return {.arg = arg, .extent = Extent::kOnInterrupt, .bytes = bytes};
}
constexpr Pointee Pages(uint8_t arg, uint8_t bytes_argument) {
  return {.arg = arg, .extent = Extent::kPages, .other = bytes_argument};
}
// Source: mm/mempolicy.c, copy_nodes_to_user: the call is told one more.
constexpr Pointee Bits(uint8_t arg, uint8_t bits_argument) {
  return {.arg = arg, .extent = Extent::kBits, .other = bits_argument};
}
constexpr Pointee Length(uint8_t arg, uint8_t other) {
  return {arg, Extent::kLength, other, sizeof(socklen_t)};
}
constexpr Pointee Text(uint8_t arg) {
  return {.arg = arg, .extent = Extent::kText};
}
constexpr Pointee Message(uint8_t arg) {
  return {.arg = arg, .extent = Extent::kMessage};
}
constexpr Pointee Header(uint8_t arg) {
  return {.arg = arg, .extent = Extent::kHeader};
}
constexpr Pointee Messages(uint8_t arg, uint8_t other) {
  return {arg, Extent::kMessages, other, sizeof(mmsghdr)};
}
constexpr Pointee FutexLimit(uint8_t arg) {
  return {.arg = arg, .extent = Extent::kFutex, .bytes = kTimespec};
}
constexpr Pointee EpollEvent(uint8_t arg) {
  return {.arg = arg, .extent = Extent::kEpollCtl, .bytes = kEpollEvent};
}

}  // namespace clew::syscall_rows

#endif  // CLEW_COMMON_LINUX_SYSCALL_ROW_H_
