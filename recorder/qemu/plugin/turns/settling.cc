// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/turns/settling.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "common/os/process_state.h"

namespace clew::recorder {
namespace {

// True if the kernel shows `tid` asleep in a call that waits for a futex or for
// time, or no such thread.
bool IsAsleep(Tid tid) {
  const std::string path = fmt::format("/proc/self/task/{}/syscall", tid);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return true;
  }
  std::array<char, 64> text = {};
  const ssize_t got = read(fd, text.data(), text.size() - 1);
  close(fd);
  const long number = got <= 0 ? SYS_futex : strtol(text.data(), nullptr, 10);
  return number == SYS_futex || number == SYS_nanosleep ||
         number == SYS_clock_nanosleep;
}

// True if the kernel shows that `tid` has ended, or no such thread: it keeps
// the first thread of a process as a zombie until the last one has ended.
bool HasEnded(Tid tid) {
  const char state = ProcessState(fmt::format("/proc/self/task/{}/stat", tid));
  return state == 0 || state == 'Z' || state == 'X';
}

}  // namespace

void AwaitAsleep(const Thread& sleeper) {
  while (!sleeper.arrived && !IsAsleep(sleeper.tid)) {
    sched_yield();
  }
}

void Settling::Await(const Thread& me) {
  for (const Thread* sleeper : sleepers_) {
    if (sleeper != &me) {
      AwaitAsleep(*sleeper);
    }
  }
  sleepers_.clear();
  for (const Tid tid : leaving_) {
    while (!HasEnded(tid)) {
      sched_yield();
    }
  }
  leaving_.clear();
}

}  // namespace clew::recorder
