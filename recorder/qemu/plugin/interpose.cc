// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <optional>

#include "recorder/qemu/calls/own_descriptor.h"
#include "recorder/qemu/plugin/plugin_recorder.h"

// Functions of libc that QEMU calls when a signal ends the program, on its way
// to ending itself. This module is preloaded, so QEMU finds these first; at
// that moment memory and registers of the program are as the signal left them.
// QEMU makes each of these calls on behalf of the program, too, but then a
// system call of the thread that has the turn is under way.

namespace clew::recorder {
namespace {

bool ProgramIsDying() {
  return g_recorder != nullptr && !g_recorder->InSyscall();
}

using Syscall = long (*)(long number, ...);

// The error number of sched_setaffinity(2), 0: none; nullopt: it is not for a
// thread of the program.
std::optional<int> SetAffinity(const std::array<long, 6>& args) {
  return g_recorder == nullptr ? std::nullopt
                               : g_recorder->SetAffinity(
                                     static_cast<pid_t>(args[0]),
                                     {reinterpret_cast<const uint8_t*>(args[2]),
                                      static_cast<size_t>(args[1])});
}

// close_range(2), but for the recorder's descriptors.
long CloseRange(Syscall real, unsigned first, unsigned last, unsigned flags) {
  for (const DescriptorRange& range : WithoutOwn({first, last})) {
    const long result = real(SYS_close_range, range.first, range.last, flags);
    if (result != 0) {
      return result;
    }
  }
  return 0;
}

}  // namespace

extern "C" {

// Called for the message about a signal that dumps core, which is to be left
// out: a recording adds nothing to the program's output.
[[gnu::visibility("default")]] char* strsignal(int signal) noexcept {
  if (ProgramIsDying()) {
    g_recorder->EndBySignal(signal);
  }
  using Function = char* (*)(int);
  static const auto real =
      reinterpret_cast<Function>(dlsym(RTLD_NEXT, "strsignal"));
  return real(signal);
}

// Called for every signal that ends the program.
[[gnu::visibility("default")]] int kill(pid_t process, int signal) noexcept {
  if (process == getpid() && ProgramIsDying()) {
    g_recorder->EndBySignal(signal);
  }
  return static_cast<int>(syscall(SYS_kill, process, signal));
}

// Called for time(2), whose result no callback could change.
[[gnu::visibility("default")]] time_t time(time_t* to) noexcept {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  const auto shown =
      g_recorder == nullptr ? std::nullopt : g_recorder->SecondsOfCall();
  const time_t seconds = shown.value_or(now.tv_sec);
  if (to != nullptr) {
    *to = seconds;
  }
  return seconds;
}

// Called for close(2). To the program the recorder's descriptors are not open.
[[gnu::visibility("default")]] int close(int fd) {
  if (IsOwnDescriptor(fd)) {
    errno = EBADF;
    return -1;
  }
  return static_cast<int>(syscall(SYS_close, fd));
}

// Called for some system calls of the program, sched_setaffinity(2) and
// close_range(2) among them.
[[gnu::visibility("default")]] long syscall(long number, ...) noexcept {
  static const auto real =
      reinterpret_cast<Syscall>(dlsym(RTLD_NEXT, "syscall"));
  va_list list;
  va_start(list, number);
  std::array<long, 6> args;
  for (long& arg : args) {
    arg = va_arg(list, long);
  }
  va_end(list);
  const auto first = static_cast<unsigned>(args[0]);
  const auto last = static_cast<unsigned>(args[1]);
  if (number == SYS_sched_setaffinity) {
    const auto error = SetAffinity(args);
    if (error) {
      errno = *error;
      return *error == 0 ? 0 : -1;
    }
  }
  if (number == SYS_close_range && first <= last) {
    return CloseRange(real, first, last, static_cast<unsigned>(args[2]));
  }
  return real(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}

}  // extern "C"

}  // namespace clew::recorder
