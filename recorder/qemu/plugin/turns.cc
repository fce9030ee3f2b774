// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "common/check.h"
#include "recorder/qemu/plugin/recording.h"

// Who has the turn, and how it goes from one thread to another.

namespace clew::recorder {
namespace {

void FutexWait(std::atomic<uint32_t>& word, uint32_t while_value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, while_value, nullptr, nullptr,
          0);
}

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

}  // namespace

Runner g_runner;

Thread& Recording::ThreadOf(unsigned vcpu) {
  CLEW_CHECK(vcpu < kThreadsMax && by_vcpu_[vcpu] != nullptr,
             "no thread for virtual CPU {}", vcpu);
  return *by_vcpu_[vcpu];
}

void Recording::AddThread(unsigned vcpu) {
  if (vcpu >= kThreadsMax) {
    GiveUp(fmt::format("more than {} threads at once", kThreadsMax));
  }
  const Locked lock = turn_lock_.Take();
  auto thread = std::make_unique<Thread>();
  thread->vcpu = vcpu;
  thread->cpu = qemu_get_cpu(static_cast<int>(vcpu));
  thread->slot = static_cast<Scheduler::Slot>(by_slot_.size());
  by_slot_.push_back(thread.get());
  newborn_ = thread.get();
  by_vcpu_[vcpu] = std::move(thread);
}

bool Recording::EnterThread(unsigned vcpu, uint64_t ip, GuestEnv env) {
  if (is_child_) {
    return false;  // into QEMU's loop, which drops the callbacks
  }
  Thread& me = ThreadOf(vcpu);
  me.env = env;
  if (!started_) {
    started_ = true;
    StartMainThread(me, ip);
  }
  const uint32_t flushes = flushes_;
  WaitForTurn(me, Waits::kAtFirstBlock);
  Begin(me);
  return flushes == flushes_;
}

void Recording::StartMainThread(Thread& me, uint64_t ip) {
  if (const std::string why = me.env.CheckLayout(ip); !why.empty()) {
    GiveUp(
        fmt::format("this QEMU keeps registers elsewhere than version 7.2 "
                    "({}); install Debian 12's qemu-user",
                    why));
  }
  newborn_ = nullptr;
  me.tid = Tid(static_cast<int32_t>(syscall(SYS_gettid)));
  OpenInputs(me);
  if (const Status status = WriteStartState(me, ip); !status) {
    GiveUp(status.error().message);
  }
  const Locked lock = turn_lock_.Take();
  MakeReady(lock, me);
  GrantNext(lock, clock_);  // to itself
}

void Recording::EndTurn(uint64_t index) {
  Thread& me = *g_runner.thread;
  const clew::recorder::Block& block = *g_runner.block;
  const uint64_t now = g_runner.block_start + index;
  const uint64_t rest = g_runner.block_end - now;
  me.block = &block;
  me.stop_index = index;
  if (TimeIsOver(now)) {
    EndByTimeLimit(now);
  }
  Sleeper next = nullptr;
  {
    const Locked lock = turn_lock_.Take();
    if (scheduler_.SliceOver(me.slot, now)) {
      CoreEncoder& encoder = tracer_->encoder(me.core);
      encoder.AdvanceTime(TscTicks(now));
      encoder.Interrupt(TraceeAddr(block.IpOf(index)));
      tracer_->SwitchOut(me.core, me.tid, now, true);
      me.state = Thread::State::kWaiting;
      scheduler_.Preempt(me.slot);
    }
    next = GrantNext(lock, now);
  }
  Wake(next);
  WaitForTurn(me, Waits::kInsideBlock);
  Begin(me);
  g_runner.block_start = clock_ - index;
  g_runner.block_end = clock_ + rest;
}

void Recording::Block(Thread& me) {
  const uint64_t now = g_runner.block_end;
  const FutexCall futex = ParseFutex(me.call.args);
  const bool futex_wait = me.call.row->blocking == Blocking::kFutex;
  Locked lock = turn_lock_.Take();
  g_runner = Runner();
  me.state = Thread::State::kBlocked;
  me.gave_turn = true;
  me.arrived = false;
  me.waits_forever = futex_wait && !futex.timed;
  tracer_->SwitchOut(me.core, me.tid, now, false);
  scheduler_.Leave(me.slot);
  if (futex_wait) {
    futexes_.Wait(me.slot, futex.addr, futex.bitset);
    unsettled_.push_back(&me);
  }
  const Sleeper next = GrantNext(lock, now);
  EndIfHung(std::move(lock));
  Wake(next);
}

void Recording::AwaitReturn(Thread& me, int64_t result) {
  Sleeper next = nullptr;
  {
    const Locked lock = turn_lock_.Take();
    me.arrived = true;
    if (me.call.row->blocking == Blocking::kFutex) {
      ArriveFromFutex(lock, me, result);
    } else {
      MakeReady(lock, me);
    }
    if (idle_) {
      PassIdleTime(lock);
      next = GrantNext(lock, clock_);
    }
  }
  Wake(next);
  WaitForTurn(me, Waits::kOutside);
  Begin(me);
  me.gave_turn = false;
}

// Usually the call that wakes a sleeper has said so before (AfterFutex). But
// the sleeper may be faster, and then that call is still to tell; or it may
// have slept no longer when the call seemed to wake it, so that another one was
// woken.
void Recording::ArriveFromFutex(const Locked& lock, Thread& me,
                                int64_t result) {
  const FutexCall call = ParseFutex(me.call.args);
  const bool thought_asleep = me.state == Thread::State::kBlocked;
  if (thought_asleep && result == 0) {
    futexes_.MarkWoken(me.slot);
  } else if (thought_asleep) {
    futexes_.Remove(me.slot);
    MakeReady(lock, me);
  } else if (result != 0) {
    for (const auto slot : futexes_.Wake(call.addr, 1, UINT32_MAX)) {
      MakeReady(lock, *by_slot_[slot]);
    }
  }
}

void Recording::ForgetThread(unsigned vcpu) {
  Thread& me = ThreadOf(vcpu);
  if (me.state != Thread::State::kGone) {
    me.cpu = nullptr;
    return;  // a CPU whose thread never ran, or that runs in another process
  }
  RecordExit(me);
  Locked lock = turn_lock_.Take();
  leaving_.push_back(me.tid);
  for (const auto slot :
       futexes_.Wake(me.clear_tid_addr, UINT64_MAX, UINT32_MAX)) {
    MakeReady(lock, *by_slot_[slot]);
  }
  ReleaseChanged(lock, me.clear_tid_addr);
  g_runner = Runner();
  by_slot_[me.slot] = nullptr;
  by_vcpu_[vcpu].reset();
  const Sleeper next = GrantNext(lock, clock_);
  EndIfHung(std::move(lock));
  Wake(next);
}

// Making the first thread does that, when the new one may be waiting at its
// first block. A thread inside a block would return into code that is gone.
void Recording::OnFlush() {
  ++flushes_;
  if (parked_ > 0 && !is_child_) {
    GiveUp(
        "QEMU dropped its translations while several threads ran; the program "
        "has more code than the recorder can follow");
  }
}

void Recording::MakeReady(const Locked& /*lock*/, Thread& thread) {
  thread.state = Thread::State::kWaiting;
  scheduler_.Ready(thread.slot);
}

Recording::Sleeper Recording::GrantNext(const Locked& lock, uint64_t now) {
  clock_ = now;
  ReleaseDue(lock, now);
  auto turn = scheduler_.Next(now);
  if (!turn.has_value()) {
    ReadyArrived(lock);
    turn = scheduler_.Next(now);
  }
  if (!turn.has_value()) {
    SkipToDeadline(lock, now);
    turn = scheduler_.Next(now);
  }
  idle_ = !turn.has_value();
  if (idle_) {
    BeginIdle(lock);
    return nullptr;
  }
  Thread& next = *by_slot_[turn->thread];
  next.core = turn->core;
  deadline_ = now + turn->insns;
  handovers_ += last_slot_ != next.slot ? 1 : 0;
  last_slot_ = next.slot;
  next.turn.store(1, std::memory_order_release);
  return &next == g_runner.thread ? nullptr : &next.turn;
}

// Its thread may be gone already, if it saw its turn without being woken: only
// the address counts.
void Recording::Wake(Sleeper sleeper) {
  if (sleeper != nullptr) {
    syscall(SYS_futex, sleeper, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
}

// Sleepers that the kernel woke without a call that was seen, for example from
// another process.
void Recording::ReadyArrived(const Locked& lock) {
  for (Thread* thread : by_slot_) {
    if (thread != nullptr && thread->state == Thread::State::kBlocked &&
        thread->arrived) {
      futexes_.Remove(thread->slot);
      MakeReady(lock, *thread);
    }
  }
}

void Recording::WaitForTurn(Thread& me, Waits where) {
  const bool inside_cpu = where != Waits::kOutside;
  const int parked = where == Waits::kInsideBlock ? 1 : 0;
  if (me.turn.load(std::memory_order_acquire) == 0) {
    if (inside_cpu) {
      parked_ += parked;
      cpu_exec_end(me.cpu);
    }
    while (me.turn.load(std::memory_order_acquire) == 0) {
      FutexWait(me.turn, 0);
    }
    if (inside_cpu) {
      cpu_exec_start(me.cpu);
      parked_ -= parked;
    }
  }
  me.turn.store(0, std::memory_order_relaxed);
}

void Recording::Begin(Thread& me) {
  Settle(me);
  tracer_->Turn(me.tid, clock_);
  CoreEncoder& encoder = tracer_->encoder(me.core);
  g_runner = {.vcpu = me.vcpu,
              .thread = &me,
              .block = me.block,
              .encoder = &encoder,
              .block_start = clock_,
              .block_end = clock_,
              .deadline = deadline_};
  if (me.state == Thread::State::kOnCore) {
    encoder.AdvanceTime(TscTicks(clock_));
    return;
  }
  me.state = Thread::State::kOnCore;
  tracer_->SwitchIn(me.core, me.tid, clock_);
  me.enable_cause = EnableCause::kSwitchIn;
  versions_shown_[me.core] = code_.latest_version();
  if (me.block != nullptr) {
    encoder.Enable(TraceeAddr(me.block->IpOf(me.stop_index)),
                   EnableCause::kSwitchIn);
    me.enable_cause = EnableCause::kKernelReturn;
  }
}

// Threads that went to sleep in a futex must be asleep before anybody can
// change its value or wake it: else the order in which the kernel sees them
// would be left to the host. A thread that ended must be gone: QEMU is about to
// clear its id in memory and to wake who waits for that.
void Recording::Settle(const Thread& me) {
  for (const Thread* sleeper : unsettled_) {
    if (sleeper != &me) {
      AwaitAsleep(*sleeper);
    }
  }
  unsettled_.clear();
  for (const Tid tid : leaving_) {
    const std::string task = fmt::format("/proc/self/task/{}", tid);
    while (access(task.c_str(), F_OK) == 0) {
      sched_yield();
    }
  }
  leaving_.clear();
}

void Recording::AwaitAsleep(const Thread& sleeper) {
  while (!sleeper.arrived && !IsAsleep(sleeper.tid)) {
    sched_yield();
  }
}

bool Recording::AllWaitForever(const Locked& /*lock*/) const {
  return !uses_timers_ &&
         std::all_of(by_slot_.begin(), by_slot_.end(), [](const Thread* t) {
           return t == nullptr || (t->state == Thread::State::kBlocked &&
                                   t->waits_forever && !t->arrived);
         });
}

void Recording::EndIfHung(Locked lock) {
  if (idle_ && AllWaitForever(lock)) {
    FinishAs(std::move(lock), FailureKind::kHang);
  }
}

}  // namespace clew::recorder
