// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "recorder/qemu/plugin/recording.h"

// The time limit. It counts what the program itself takes: its instructions, by
// the virtual clock, and the real time in which none of its threads can run,
// because all wait for something outside. How fast the host is does not matter,
// and a program that waits for nothing outside ends at the same instruction
// each time. Time that is skipped (SkipToDeadline) does not count.

namespace clew::recorder {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;
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

// The kernel's letter for the state of a thread, behind its name (proc(5),
// /proc/pid/stat); 0 if it is gone.
char StateOf(const std::string& task) {
  const std::string path = "/proc/self/task/" + task + "/stat";
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return 0;
  }
  std::array<char, 128> bytes;
  const ssize_t got = read(fd, bytes.data(), bytes.size());
  close(fd);
  const std::string_view text(bytes.data(), got < 0 ? 0 : size_t(got));
  const size_t name_end = text.rfind(") ");
  return name_end == text.npos || name_end + 2 >= text.size()
             ? 0
             : text[name_end + 2];
}

// True if a thread but the caller's runs, or could if it had a CPU.
bool AnyThreadRuns() {
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) {
    return true;
  }
  const std::string own = fmt::format("{}", syscall(SYS_gettid));
  bool runs = false;
  while (const dirent* task = readdir(tasks)) {
    const std::string name = task->d_name;
    runs = runs || (name[0] != '.' && name != own && StateOf(name) == 'R');
  }
  (void)closedir(tasks);  // read only
  return runs;
}

}  // namespace

bool Recording::TimeIsOver(uint64_t now_ticks) const {
  return session_.timeout_s > 0 &&
         (now_ticks - kFirstTick) * VirtualClock::kNsPerTick + waited_ns_ >=
             session_.timeout_s * kNsPerSecond;
}

// Any thread.
uint64_t Recording::Ticks() {
  const uint64_t turn_began =
      std::atomic_ref(clock_).load(std::memory_order_relaxed);
  const uint64_t block_ends =
      std::atomic_ref(g_runner.block_end).load(std::memory_order_relaxed);
  return std::max(turn_began, block_ends);
}

void Recording::WatchTime() {
  uint64_t ticks = 0;
  uint64_t cpu_ns = 0;
  for (;;) {
    Pause();
    const uint64_t now = Ticks();
    if (now != ticks || now == kFirstTick) {
      ticks = now;
      cpu_ns = CpuNs();
    } else if (!AnyThreadRuns()) {
      waited_ns_ += kPeriodNs;
      cpu_ns = CpuNs();
      EndIfWaiting(now);
    } else if (CpuNs() - cpu_ns > kStuckNs) {
      EndIfStuck();
    }
  }
}

// Threads that wake up meanwhile do not get far: AwaitEnd. The lock is taken
// already if the recording is ending.
void Recording::EndIfWaiting(uint64_t now) {
  if (!TimeIsOver(now)) {
    return;
  }
  auto lock = turn_lock_.TryTake();
  if (!lock) {
    return;
  }
  ending_ = true;
  if (!AnyThreadRuns() && now == Ticks()) {
    clock_ = now;
    FinishAs(*std::move(lock), FailureKind::kTimeLimit);
  }
  ending_ = false;
}

void Recording::EndIfStuck() {
  if (const auto lock = turn_lock_.TryTake()) {
    GiveUp(
        fmt::format("qemu-x86_64 ran for {} s of CPU time without an "
                    "instruction of the program",
                    kStuckNs / kNsPerSecond));
  }
}

// After a call that did not give the turn away.
void Recording::AwaitEnd() {
  if (ending_) {
    const Locked lock = turn_lock_.Take();
  }
}

}  // namespace clew::recorder
