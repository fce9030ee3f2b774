#ifndef CLEW_COMMON_LINUX_CALLS_TIME_H_
#define CLEW_COMMON_LINUX_CALLS_TIME_H_

#include "common/linux/syscall_row.h"

// Rows of the table of system calls: clocks, timers and sleeping.

namespace clew::syscall_rows {

inline constexpr SyscallRow kTimeCalls[] = {
    CLEW_CALL(nanosleep, "ll", .blocking = Blocking::kAlways,
              .writes = {OnInterrupt(1, kTimespec)},
              .reads = {Fixed(0, kTimespec)}),
    CLEW_CALL(getitimer, "il", .writes = {Fixed(1, kTwoTimespecs)}),
    CLEW_CALL(alarm, "i"),
    CLEW_CALL(setitimer, "ill", .writes = {Fixed(2, kTwoTimespecs)},
              .reads = {Fixed(1, kTwoTimespecs)}),
    CLEW_CALL(gettimeofday, "ll", .writes = {Fixed(0, kTimespec), Fixed(1, 8)}),
    CLEW_CALL(times, "l", .writes = {Fixed(0, kTms)}),
    CLEW_CALL(adjtimex, "l", .writes = {Fixed(0, kTimex)},
              .reads = {Fixed(0, kTimex)}),
    CLEW_CALL_UNKNOWN(settimeofday, "ll"),
    CLEW_CALL(time, "l", .writes = {Fixed(0, 8)}),
    CLEW_CALL(timer_create, "ill", .writes = {Fixed(2, 4)},
              .reads = {Fixed(1, kSigevent)}),
    CLEW_CALL(timer_settime, "iill", .writes = {Fixed(3, kTwoTimespecs)},
              .reads = {Fixed(2, kTwoTimespecs)}),
    CLEW_CALL(timer_gettime, "il", .writes = {Fixed(1, kTwoTimespecs)}),
    CLEW_CALL(timer_getoverrun, "i"),
    CLEW_CALL(timer_delete, "i"),
    CLEW_CALL(clock_settime, "il", .reads = {Fixed(1, kTimespec)}),
    CLEW_CALL(clock_gettime, "il", .writes = {Fixed(1, kTimespec)}),
    CLEW_CALL(clock_getres, "il", .writes = {Fixed(1, kTimespec)}),
    CLEW_CALL(clock_nanosleep, "iill", .blocking = Blocking::kAlways,
              .writes = {OnInterrupt(3, kTimespec)},
              .reads = {Fixed(2, kTimespec)}),
    CLEW_CALL(timerfd_create, "ii"),
    CLEW_CALL(timerfd_settime, "iill", .writes = {Fixed(3, kTwoTimespecs)},
              .reads = {Fixed(2, kTwoTimespecs)}),
    CLEW_CALL(timerfd_gettime, "il", .writes = {Fixed(1, kTwoTimespecs)}),
    CLEW_CALL(clock_adjtime, "il", .writes = {Fixed(1, kTimex)},
              .reads = {Fixed(1, kTimex)}),
};

}  // namespace clew::syscall_rows

#endif  // CLEW_COMMON_LINUX_CALLS_TIME_H_
