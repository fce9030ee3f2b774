// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/turns/time_limit_watch.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "common/os/process_state.h"
#include "common/units.h"

namespace clew::recorder {
namespace {

constexpr uint64_t kPeriodNs = 50'000'000;
// CPU time without an instruction after which something is wrong with QEMU or
// with us.
constexpr uint64_t kStuckNs = 60 * kNsPerSecond;

uint64_t CpuNs() {
  timespec used = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return Nanoseconds(used);
}

void Pause() {
  const timespec period = {.tv_sec = 0, .tv_nsec = kPeriodNs};
  nanosleep(&period, nullptr);
}

// As ProcessState. What waits in state D waits for the host's disk, perhaps
// with what we write.
bool RunsOrWouldOnAnIdleHost(char state) {
  return state == 'R' || state == 'D';
}

// Of all threads but the caller's.
bool AnyThreadRuns() {
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) {
    return true;
  }
  const std::string own = fmt::format("{}", syscall(SYS_gettid));
  bool runs = false;
  while (const dirent* task = readdir(tasks)) {
    const std::string name = task->d_name;
    runs = runs || (name[0] != '.' && name != own &&
                    RunsOrWouldOnAnIdleHost(
                        ProcessState("/proc/self/task/" + name + "/stat")));
  }
  (void)closedir(tasks);  // read only
  return runs;
}

}  // namespace

void TimeLimitWatch::Run() {
  uint64_t ticks = 0;
  uint64_t cpu_ns = 0;
  for (;;) {
    Pause();
    const uint64_t now = time_.Ticks();
    if (now != ticks || !ProgramTime::HasBegun(now)) {
      ticks = now;
      cpu_ns = CpuNs();
    } else if (!AnyThreadRuns()) {
      time_.CountWaiting(kPeriodNs);
      cpu_ns = CpuNs();
      EndIfWaiting(now);
    } else if (CpuNs() - cpu_ns > kStuckNs) {
      EndIfStuck();
    }
  }
}

// Threads that wake up meanwhile do not get far: AwaitEnd. The lock is taken
// already if the recording is ending.
void TimeLimitWatch::EndIfWaiting(uint64_t ticks) {
  if (!time_.IsOver(ticks)) {
    return;
  }
  auto lock = turns_.TryLock();
  if (!lock) {
    return;
  }
  ends_ = true;
  if (!AnyThreadRuns() && ticks == time_.Ticks()) {
    ending_.EndAs(*std::move(lock), FailureKind::kTimeLimit, ticks);
  }
  ends_ = false;
}

void TimeLimitWatch::EndIfStuck() {
  if (const auto lock = turns_.TryLock()) {
    context_.GiveUp(
        fmt::format("qemu-x86_64 ran for {} s of CPU time without an "
                    "instruction of the program",
                    kStuckNs / kNsPerSecond));
  }
}

void TimeLimitWatch::AwaitEnd() {
  if (ends_) {
    const Locked lock = turns_.Lock();
  }
}

}  // namespace clew::recorder
