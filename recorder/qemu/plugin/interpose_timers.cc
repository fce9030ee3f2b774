// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include <dlfcn.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "common/units.h"
#include "recorder/qemu/plugin/plugin_recorder.h"
#include "recorder/qemu/timer_values.h"

// Functions of libc by which QEMU makes the program's calls on timers; see
// interpose.cc. They show the kernel how long a timer has to run, and the
// program what is left by the clock that it reads (program_timers.h).

namespace clew::recorder {
namespace {

using Kind = ProgramTimers::Kind;

// nullptr: the call is not the recorded program's.
TimerCalls* Timers() {
  return g_recorder == nullptr ? nullptr : g_recorder->timer_calls();
}

uint64_t ClockOfDescriptor(int fd) {
  unsigned long clock = UINT64_MAX;
  const std::string path = fmt::format("/proc/thread-self/fdinfo/{}", fd);
  if (FILE* const info = fopen(path.c_str(), "re"); info != nullptr) {
    for (char line[64]; fgets(line, sizeof(line), info) != nullptr;) {
      (void)sscanf(line, "clockid: %lu", &clock);  // one line is so
    }
    (void)fclose(info);  // read only
  }
  return clock;
}

uint64_t IdOf(timer_t timer) { return reinterpret_cast<uintptr_t>(timer); }

template <class Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// What was left before, if that is asked for.
void ShowLeft(const std::optional<itimerspec>& before, itimerspec* left) {
  if (left != nullptr && before) {
    *left = *before;
  }
}

}  // namespace

extern "C" {

[[gnu::visibility("default")]] int timerfd_settime(int fd, int flags,
                                                   const itimerspec* wanted,
                                                   itimerspec* left) noexcept {
  TimerCalls* const timers = Timers();
  if (timers == nullptr || wanted == nullptr) {
    return static_cast<int>(
        syscall(SYS_timerfd_settime, fd, flags, wanted, left));
  }
  const ProgramTimers::Key key{.kind = Kind::kDescriptor,
                               .id = static_cast<uint64_t>(fd)};
  itimerspec before = {};
  const bool known = syscall(SYS_timerfd_gettime, fd, &before) == 0;
  const itimerspec shown = timers->Left(key, before);
  const bool absolute = (flags & TFD_TIMER_ABSTIME) != 0;
  const auto host =
      known ? timers->Set(key, ClockOfDescriptor(fd), absolute, *wanted)
            : std::nullopt;
  const int result = static_cast<int>(syscall(
      SYS_timerfd_settime, fd, host ? flags & ~TFD_TIMER_ABSTIME : flags,
      host ? &*host : wanted, left));
  ShowLeft(host ? std::optional(shown) : std::nullopt, left);
  return result;
}

[[gnu::visibility("default")]] int timerfd_gettime(int fd,
                                                   itimerspec* left) noexcept {
  const int result = static_cast<int>(syscall(SYS_timerfd_gettime, fd, left));
  if (TimerCalls* const timers = Timers(); timers != nullptr && result == 0) {
    *left = timers->Left({Kind::kDescriptor, static_cast<uint64_t>(fd)}, *left);
  }
  return result;
}

[[gnu::visibility("default")]] int timer_create(clockid_t clock,
                                                sigevent* event,
                                                timer_t* timer) noexcept {
  static auto* const real = Next<decltype(timer_create)>("timer_create");
  const int result = real(clock, event, timer);
  if (TimerCalls* const timers = Timers(); timers != nullptr && result == 0) {
    timers->NoteClock(IdOf(*timer), static_cast<uint64_t>(clock));
  }
  return result;
}

[[gnu::visibility("default")]] int timer_settime(timer_t timer, int flags,
                                                 const itimerspec* wanted,
                                                 itimerspec* left) noexcept {
  static auto* const real = Next<decltype(timer_settime)>("timer_settime");
  static auto* const get = Next<decltype(timer_gettime)>("timer_gettime");
  TimerCalls* const timers = Timers();
  if (timers == nullptr || wanted == nullptr) {
    return real(timer, flags, wanted, left);
  }
  const ProgramTimers::Key key{.kind = Kind::kPosix, .id = IdOf(timer)};
  itimerspec before = {};
  (void)get(timer, &before);  // where it fails, so does what follows
  const itimerspec shown = timers->Left(key, before);
  const auto host = timers->Set(key, timers->ClockOf(IdOf(timer)),
                                (flags & TIMER_ABSTIME) != 0, *wanted);
  const int result = real(timer, host ? flags & ~TIMER_ABSTIME : flags,
                          host ? &*host : wanted, left);
  ShowLeft(host ? std::optional(shown) : std::nullopt, left);
  return result;
}

[[gnu::visibility("default")]] int timer_gettime(timer_t timer,
                                                 itimerspec* left) noexcept {
  static auto* const real = Next<decltype(timer_gettime)>("timer_gettime");
  const int result = real(timer, left);
  if (TimerCalls* const timers = Timers(); timers != nullptr && result == 0) {
    *left = timers->Left({Kind::kPosix, IdOf(timer)}, *left);
  }
  return result;
}

[[gnu::visibility("default")]] int getitimer(__itimer_which_t which,
                                             itimerval* left) noexcept {
  const int result = static_cast<int>(syscall(SYS_getitimer, which, left));
  TimerCalls* const timers = Timers();
  if (timers != nullptr && result == 0 && which == ITIMER_REAL) {
    *left = ToItimerval(timers->Left({Kind::kReal, 0}, ToItimerspec(*left)));
  }
  return result;
}

[[gnu::visibility("default")]] int setitimer(__itimer_which_t which,
                                             const itimerval* wanted,
                                             itimerval* left) noexcept {
  TimerCalls* const timers = Timers();
  if (timers == nullptr || wanted == nullptr || which != ITIMER_REAL) {
    return static_cast<int>(syscall(SYS_setitimer, which, wanted, left));
  }
  itimerval shown = {};
  (void)getitimer(which, &shown);  // there is always one
  const auto host = timers->Set({Kind::kReal, 0}, CLOCK_MONOTONIC, false,
                                ToItimerspec(*wanted));
  const itimerval run = host ? ToItimerval(*host) : *wanted;
  const int result =
      static_cast<int>(syscall(SYS_setitimer, which, &run, left));
  if (left != nullptr && result == 0) {
    *left = shown;
  }
  return result;
}

[[gnu::visibility("default")]] unsigned alarm(unsigned seconds) noexcept {
  const itimerval wanted = {.it_interval = {},
                            .it_value = {.tv_sec = seconds, .tv_usec = 0}};
  itimerval left = {};
  (void)setitimer(ITIMER_REAL, &wanted, &left);  // no argument can be wrong
  return AlarmSeconds(left.it_value);
}

}  // extern "C"

}  // namespace clew::recorder
