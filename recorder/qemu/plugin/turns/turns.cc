// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/turns/turns.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "recorder/qemu/plugin/qemu_api.h"

namespace clew::recorder {
namespace {

// Returns false if `limit`, nullptr: none, is over.
bool FutexWait(std::atomic<uint32_t>& word, uint32_t while_value,
               const timespec* limit) {
  return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, while_value, limit,
                 nullptr, 0) == 0 ||
         errno != ETIMEDOUT;
}

}  // namespace

Runner g_runner;

void Turns::Start(Thread& me) {
  const Locked lock = Lock();
  MakeReady(lock, me);
  GrantNext(lock, time_.turn_end());  // to itself
}

void Turns::AddReady(Thread& child) {
  const Locked lock = Lock();
  MakeReady(lock, child);
}

bool Turns::Enter(Thread& me) {
  const uint32_t flushes = flushes_;
  WaitForTurn(me, Waits::kAtFirstBlock);
  Begin(me);
  return flushes == flushes_;
}

void Turns::EndTurn(Thread& me) {
  const uint64_t index = me.stop_index;
  const uint64_t now = g_runner.block_start + index;
  const uint64_t rest = g_runner.block_end - now;
  Sleeper next = nullptr;
  {
    const Locked lock = Lock();
    if (scheduler_.SliceOver(me.slot, now)) {
      LeaveCoreAt(me, index, now);
      me.state = Thread::State::kWaiting;
      scheduler_.Preempt(me.slot);
    }
    next = GrantNext(lock, now);
  }
  Wake(next);
  WaitForTurn(me, Waits::kInsideBlock);
  Begin(me);
  g_runner.block_start = time_.turn_end() - index;
  g_runner.block_end = time_.turn_end() + rest;
}

// As an interrupt takes it from its core before instruction `index`.
void Turns::LeaveCoreAt(Thread& me, uint64_t index, uint64_t now) {
  CoreEncoder& encoder = context_.tracer->encoder(me.core);
  encoder.AdvanceTime(TscTicks(now));
  encoder.Interrupt(TraceeAddr(me.block->IpOf(index)));
  context_.tracer->SwitchOut(me.core, me.tid, now, true);
}

void Turns::Hold(Thread& me, const TimedWait& wait) {
  me.block = g_runner.block;
  const uint64_t index = me.block->insn_count - 1;
  const uint64_t now = g_runner.block_end - 1;
  Sleeper next = nullptr;
  {
    const Locked lock = Lock();
    LeaveCoreAt(me, index, now);
    me.stop_index = index;
    me.state = Thread::State::kBlocked;
    me.arrived = false;
    me.waits_forever = false;
    held_.Add(lock, me, wait);
    scheduler_.Leave(me.slot);
    g_runner = Runner();
    next = GrantNext(lock, now);
  }
  Wake(next);
  WaitWhileHeld(me);
  Begin(me);
  g_runner.block_start = time_.turn_end() - index;
  g_runner.block_end = time_.turn_end() + 1;
}

std::optional<Locked> Turns::LetWait(Thread& me) {
  const uint64_t now = g_runner.block_end;
  const FutexCall futex = ParseFutex(me.call.args);
  const bool futex_wait = me.call.row->blocking == Blocking::kFutex;
  Locked lock = Lock();
  g_runner = Runner();
  me.state = Thread::State::kBlocked;
  me.gave_turn = true;
  me.arrived = false;
  me.waits_forever = futex_wait && !futex.timed &&
                     (futex.is_private || !IsSharedMapping(futex.addr));
  context_.tracer->SwitchOut(me.core, me.tid, now, false);
  scheduler_.Leave(me.slot);
  if (futex_wait) {
    futexes_.Wait(me.slot, futex.addr, futex.bitset);
    settling_.AddSleeper(lock, me);
  }
  return GrantNextUnlessHung(std::move(lock), now);
}

void Turns::AwaitReturn(Thread& me, int64_t result) {
  Sleeper next = nullptr;
  {
    const Locked lock = Lock();
    me.arrived = true;
    if (me.call.row->blocking == Blocking::kFutex) {
      ArriveFromFutex(lock, me, result);
    } else {
      MakeReady(lock, me);
    }
    if (idle_) {
      time_.PassIdle(lock);
      next = GrantNext(lock, time_.turn_end());
    }
  }
  Wake(next);
  WaitForTurn(me, Waits::kOutside);
  Begin(me);
  me.gave_turn = false;
}

// Usually the call that wakes a sleeper has said so before (FutexReturned). But
// the sleeper may be faster, and then that call is still to tell; or it may
// have slept no longer when the call seemed to wake it, so that another one was
// woken.
void Turns::ArriveFromFutex(const Locked& lock, Thread& me, int64_t result) {
  const FutexCall call = ParseFutex(me.call.args);
  const bool thought_asleep = me.state == Thread::State::kBlocked;
  if (thought_asleep && result == 0) {
    futexes_.MarkWoken(me.slot);
  } else if (thought_asleep) {
    futexes_.Remove(me.slot);
    MakeReady(lock, me);
  } else if (result != 0) {
    for (const auto slot : futexes_.Wake(call.addr, 1, UINT32_MAX)) {
      MakeReady(lock, threads_.InSlot(slot));
    }
  }
}

void Turns::Exit(Thread& me) {
  const uint64_t now = g_runner.block_end;
  context_.tracer->Exit(me.core, me.tid, me.parent, now);
  context_.tracer->SwitchOut(me.core, me.tid, now, false);
  const Locked lock = Lock();
  time_.set_turn_end(now);
  scheduler_.Leave(me.slot);
  me.state = Thread::State::kGone;
}

std::optional<Locked> Turns::Forget(Thread& me) {
  Locked lock = Lock();
  settling_.AddLeaving(lock, me.tid);
  for (const auto slot :
       futexes_.Wake(me.clear_tid_addr, UINT64_MAX, UINT32_MAX)) {
    MakeReady(lock, threads_.InSlot(slot));
  }
  ReleaseChanged(lock, me.clear_tid_addr);
  g_runner = Runner();
  threads_.Remove(me);
  return GrantNextUnlessHung(std::move(lock), time_.turn_end());
}

void Turns::FutexReturned(const FutexCall& call, int64_t result) {
  if (result < 0 || call.kind == FutexCall::Kind::kWait) {
    return;
  }
  const Locked lock = Lock();
  ReleaseChanged(lock, call.addr);
  if (call.kind == FutexCall::Kind::kWakeOp) {
    ReleaseChanged(lock, call.addr2);
  }
  for (const auto slot : futexes_.WakeBy(call, static_cast<uint64_t>(result))) {
    MakeReady(lock, threads_.InSlot(slot));
  }
}

bool Turns::ReleaseIf(const std::function<bool(Thread&)>& interrupted) {
  const Locked lock = Lock();
  const std::vector<Thread*> released = held_.TakeIf(lock, interrupted);
  MakeReady(lock, released);
  return !released.empty();
}

void Turns::MakeReady(const Locked& /*lock*/, Thread& thread) {
  thread.state = Thread::State::kWaiting;
  scheduler_.Ready(thread.slot);
}

void Turns::MakeReady(const Locked& lock, const std::vector<Thread*>& threads) {
  for (Thread* thread : threads) {
    MakeReady(lock, *thread);
  }
}

Turns::Sleeper Turns::GrantNext(const Locked& lock, uint64_t now) {
  time_.set_turn_end(now);
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
    time_.BeginIdle(lock);
    return nullptr;
  }
  Thread& next = threads_.InSlot(turn->thread);
  next.core = turn->core;
  deadline_ = now + turn->insns;
  handovers_ += last_slot_ != next.slot ? 1 : 0;
  last_slot_ = next.slot;
  next.turn.store(1, std::memory_order_release);
  return &next == g_runner.thread ? nullptr : &next.turn;
}

// Its thread may be gone already, if it saw its turn without being woken: only
// the address counts.
void Turns::Wake(Sleeper sleeper) {
  if (sleeper != nullptr) {
    syscall(SYS_futex, sleeper, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
}

std::optional<Locked> Turns::GrantNextUnlessHung(Locked lock, uint64_t now) {
  const Sleeper next = GrantNext(lock, now);
  if (idle_ && AllWaitForever(lock)) {
    return lock;
  }
  {
    const Locked released = std::move(lock);
  }
  Wake(next);
  return std::nullopt;
}

bool Turns::AllWaitForever(const Locked& /*lock*/) const {
  return !uses_timers_ &&
         std::ranges::all_of(threads_.all(), [](const Thread* t) {
           return t->state == Thread::State::kBlocked && t->waits_forever &&
                  !t->arrived;
         });
}

// Sleepers that the kernel woke without a call that was seen, for example from
// another process.
void Turns::ReadyArrived(const Locked& lock) {
  for (Thread* thread : threads_.all()) {
    if (thread->state == Thread::State::kBlocked && thread->arrived) {
      futexes_.Remove(thread->slot);
      MakeReady(lock, *thread);
    }
  }
}

void Turns::WaitForTurn(Thread& me, Waits where) {
  const bool inside_cpu = where != Waits::kOutside;
  const int parked = where == Waits::kInsideBlock ? 1 : 0;
  if (me.turn.load(std::memory_order_acquire) == 0) {
    if (inside_cpu) {
      parked_ += parked;
      cpu_exec_end(me.cpu);
    }
    while (me.turn.load(std::memory_order_acquire) == 0) {
      FutexWait(me.turn, 0, nullptr);
    }
    if (inside_cpu) {
      cpu_exec_start(me.cpu);
      parked_ -= parked;
    }
  }
  me.turn.store(0, std::memory_order_relaxed);
}

// Real time counts only while no thread can run and something outside is waited
// for.
void Turns::WaitWhileHeld(Thread& me) {
  constexpr timespec kPoll = {.tv_sec = 0, .tv_nsec = 2'000'000};
  while (me.turn.load(std::memory_order_acquire) == 0) {
    if (!FutexWait(me.turn, 0, &kPoll)) {
      Wake(PassIdleTime());
    }
  }
  me.turn.store(0, std::memory_order_relaxed);
}

Turns::Sleeper Turns::PassIdleTime() {
  const Locked lock = Lock();
  if (!idle_) {
    return nullptr;
  }
  time_.PassIdle(lock);
  const uint64_t now = time_.turn_end();
  return held_.next_deadline_ns(lock) <= time_.clock().Now(now)
             ? GrantNext(lock, now)
             : nullptr;
}

void Turns::Begin(Thread& me) {
  settling_.Await(me);
  const uint64_t now = time_.turn_end();
  context_.tracer->Turn(me.tid, now);
  CoreEncoder& encoder = context_.tracer->encoder(me.core);
  g_runner = {.vcpu = me.vcpu,
              .thread = &me,
              .block = me.block,
              .encoder = &encoder,
              .block_start = now,
              .block_end = now,
              .deadline = deadline_};
  if (me.state == Thread::State::kOnCore) {
    encoder.AdvanceTime(TscTicks(now));
    return;
  }
  me.state = Thread::State::kOnCore;
  context_.tracer->SwitchIn(me.core, me.tid, now);
  me.enable_cause = EnableCause::kSwitchIn;
  code_.ShowAll(me.core);
  if (me.block != nullptr) {
    encoder.Enable(TraceeAddr(me.block->IpOf(me.stop_index)),
                   EnableCause::kSwitchIn);
    me.enable_cause = EnableCause::kKernelReturn;
  }
}

// For when no thread can run, and only time can change that.
void Turns::SkipToDeadline(const Locked& lock, uint64_t now) {
  const bool outside =
      uses_timers_ || std::ranges::any_of(threads_.all(), [](const Thread* t) {
        return t->state == Thread::State::kBlocked && !t->held.has_value() &&
               !t->waits_forever;
      });
  const uint64_t deadline = held_.next_deadline_ns(lock);
  if (!outside && deadline != VirtualClock::kNever) {
    time_.SkipTo(lock, deadline, now);
    ReleaseDue(lock, now);
  }
}

void Turns::ReleaseDue(const Locked& lock, uint64_t now) {
  const uint64_t now_ns = time_.clock().Now(now);
  if (now_ns >= held_.next_deadline_ns(lock)) {
    MakeReady(lock, held_.TakeIf(lock, [now_ns](const Thread& t) {
      return t.held->deadline_ns <= now_ns;
    }));
  }
}

// A call may have woken who waits for the word at `addr`.
void Turns::ReleaseChanged(const Locked& lock, uint64_t addr) {
  if (!held_.empty(lock)) {
    MakeReady(lock, held_.TakeIf(lock, [&](const Thread& t) {
      return t.held->futex_addr == addr && t.held->Changed(context_.memory);
    }));
  }
}

}  // namespace clew::recorder
