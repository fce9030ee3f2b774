// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "recorder/qemu/plugin/recording.h"

// Functions of libc that QEMU calls when a signal ends the program, on its way
// to ending itself. This module is preloaded, so QEMU finds these first; at
// that moment memory and registers of the program are as the signal left them.
// QEMU makes each of these calls on behalf of the program, too, but then a
// system call of the thread that has the turn is under way.

namespace clew::recorder {
namespace {

bool ProgramIsDying() {
  return g_recording != nullptr && !g_recording->InSyscall();
}

}  // namespace

extern "C" {

// Called for the message about a signal that dumps core, which is to be left
// out: a recording adds nothing to the program's output.
[[gnu::visibility("default")]] char* strsignal(int signal) noexcept {
  if (ProgramIsDying()) {
    g_recording->EndBySignal(signal);
  }
  using Function = char* (*)(int);
  static const auto real =
      reinterpret_cast<Function>(dlsym(RTLD_NEXT, "strsignal"));
  return real(signal);
}

// Called for every signal that ends the program.
[[gnu::visibility("default")]] int kill(pid_t process, int signal) noexcept {
  if (process == getpid() && ProgramIsDying()) {
    g_recording->EndBySignal(signal);
  }
  return static_cast<int>(syscall(SYS_kill, process, signal));
}

// Called for time(2), whose result no callback could change.
[[gnu::visibility("default")]] time_t time(time_t* to) noexcept {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  const auto shown =
      g_recording == nullptr ? std::nullopt : g_recording->SecondsOfCall();
  const time_t seconds = shown.value_or(now.tv_sec);
  if (to != nullptr) {
    *to = seconds;
  }
  return seconds;
}

}  // extern "C"

}  // namespace clew::recorder
