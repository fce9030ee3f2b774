#ifndef CLEW_RECORDER_QEMU_TIMER_VALUES_H_
#define CLEW_RECORDER_QEMU_TIMER_VALUES_H_

#include <sys/time.h>
#include <time.h>

namespace clew::recorder {

// Times of timers, in microseconds as setitimer(2) has them and in nanoseconds.

inline timespec ToTimespec(const timeval& time) {
  return {.tv_sec = time.tv_sec, .tv_nsec = time.tv_usec * 1000};
}

// Rounded up: a timer is not to be early, and not to be none.
inline timeval ToTimeval(const timespec& time) {
  const long us = (time.tv_nsec + 999) / 1000;
  return {.tv_sec = time.tv_sec + us / 1'000'000, .tv_usec = us % 1'000'000};
}

inline itimerval ToItimerval(const itimerspec& time) {
  return {.it_interval = ToTimeval(time.it_interval),
          .it_value = ToTimeval(time.it_value)};
}

inline itimerspec ToItimerspec(const itimerval& time) {
  return {.it_interval = ToTimespec(time.it_interval),
          .it_value = ToTimespec(time.it_value)};
}

// What alarm(2) returns where `left` is left of the timer that it replaces.
// Source: linux kernel/time/itimer.c, alarm_setitimer.
inline unsigned AlarmSeconds(const timeval& left) {
  const bool up =
      left.tv_usec >= 500'000 || (left.tv_sec == 0 && left.tv_usec > 0);
  return static_cast<unsigned>(left.tv_sec) + (up ? 1 : 0);
}

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_TIMER_VALUES_H_
