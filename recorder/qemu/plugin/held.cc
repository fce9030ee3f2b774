// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "recorder/qemu/plugin/recording.h"

// Waits with a time limit, decided on the virtual clock.
//
// A thread whose call would wait is held before its SYSCALL instruction, as if
// it had been preempted there. It goes on when the time is over by the virtual
// clock, or the futex's word has changed and somebody wakes for it; then its
// call does not wait: the kernel is shown a time limit that is over. It also
// goes on before a thread sends it a signal, and then waits in the kernel, so
// that the signal finds it there.

namespace clew::recorder {
namespace {

constexpr timespec kOver = {};  // a time limit in the past, and of no length
// An absolute one that no clock of the host reaches.
constexpr timespec kFar = {.tv_sec = int64_t{1} << 33, .tv_nsec = 0};
// How long a thread that sends a signal waits before it looks again.
constexpr uint64_t kMomentTicks = 100;

struct SentSignal {
  uint64_t tid = 0;
  uint64_t signal = 0;
};

// Whom the kernel gives the signal: one sent to the process goes to its first
// thread, unless that blocks it.
std::optional<SentSignal> SignalOf(const SyscallCall& call) {
  switch (call.number) {
    case SYS_kill:
      return SentSignal{.tid = call.args[0], .signal = call.args[1]};
    case SYS_tkill:
      return SentSignal{.tid = call.args[0], .signal = call.args[1]};
    case SYS_tgkill:
      return SentSignal{.tid = call.args[1], .signal = call.args[2]};
    default:
      return std::nullopt;
  }
}

uint64_t HostNs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Nanoseconds(now);
}

}  // namespace

// Until the call may be made. What it waits for, if it is such a call.
std::optional<TimedWait> Recording::HoldTimedWait(Thread& me,
                                                  const SyscallCall& call) {
  const auto wait =
      ParseTimedWait(call, memory_, virtual_clock_, g_runner.block_end);
  if (!wait || !memory_.can_write()) {
    return std::nullopt;
  }
  me.interrupted = false;
  while (!IsDue(*wait) && !me.interrupted && !wait->Changed(memory_)) {
    Hold(me, *wait);
  }
  return wait;
}

bool Recording::IsDue(const TimedWait& wait) const {
  return virtual_clock_.Now(g_runner.block_end) >= wait.deadline_ns;
}

// To the kernel, after HoldTimedWait.
void Recording::ShowTimeLimit(Thread& me, const TimedWait& wait) {
  if (IsDue(wait) || wait.Changed(memory_)) {
    me.interrupted = false;
    me.limit_is_over = SetTimeLimit(me, wait.timespec_addr, kOver);
  } else if (wait.absolute) {
    (void)SetTimeLimit(me, wait.timespec_addr, kFar);  // else it may be over
  }
}

// Whether the program itself would read something else there.
bool Recording::ShowsOtherTimeLimit(
    const std::vector<MemoryRange>& ranges) const {
  return std::any_of(by_slot_.begin(), by_slot_.end(), [&](const Thread* t) {
    return t != nullptr && t->time_limit.has_value() &&
           std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) {
             return t->time_limit_addr < range.addr + range.size_bytes &&
                    range.addr < t->time_limit_addr + sizeof(timespec);
           });
  });
}

// Threads that are held, and that the call is going to send a signal, wait in
// the kernel when it does.
void Recording::LetBeInterrupted(Thread& me, const SyscallCall& call) {
  const auto sent = SignalOf(call);
  if (!sent) {
    return;
  }
  {
    const Locked lock = turn_lock_.Take();
    if (!ReleaseSignalled(lock, sent->tid, sent->signal)) {
      return;
    }
  }
  const auto on_its_way = [](const Thread* t) {
    return t != nullptr && t->interrupted &&
           t->state != Thread::State::kBlocked;
  };
  while (std::any_of(by_slot_.begin(), by_slot_.end(), on_its_way)) {
    Hold(me, {.deadline_ns =
                  virtual_clock_.Now(g_runner.block_end + kMomentTicks)});
  }
  for (Thread* thread : by_slot_) {
    if (thread != nullptr && thread->interrupted) {
      AwaitAsleep(*thread);
      RestoreTimeLimit(*thread);  // QEMU has read it
      thread->interrupted = false;
    }
  }
}

// Shows the kernel another time limit. False: it cannot.
bool Recording::SetTimeLimit(Thread& me, uint64_t addr, const timespec& limit) {
  me.time_limit = memory_.Load<timespec>(addr);
  me.time_limit_addr = addr;
  if (!memory_.Write(addr, &limit, sizeof(limit))) {
    me.time_limit.reset();
    return false;
  }
  return true;
}

void Recording::RestoreTimeLimit(Thread& me) {
  if (me.time_limit.has_value()) {
    (void)memory_.Write(me.time_limit_addr, &*me.time_limit,
                        sizeof(timespec));  // it could be written before
    me.time_limit.reset();
  }
  me.limit_is_over = false;
}

// As EndTurn, before the block's last instruction, and for longer.
void Recording::Hold(Thread& me, const TimedWait& wait) {
  const clew::recorder::Block& block = *g_runner.block;
  const uint64_t index = block.insn_count - 1;
  const uint64_t now = g_runner.block_end - 1;
  Sleeper next = nullptr;
  {
    const Locked lock = turn_lock_.Take();
    CoreEncoder& encoder = tracer_->encoder(me.core);
    encoder.AdvanceTime(TscTicks(now));
    encoder.Interrupt(TraceeAddr(block.IpOf(index)));
    tracer_->SwitchOut(me.core, me.tid, now, true);
    me.block = &block;
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
  g_runner.block_start = clock_ - index;
  g_runner.block_end = clock_ + 1;
}

// Real time counts only while nobody can run and something outside is waited
// for.
void Recording::WaitWhileHeld(Thread& me) {
  constexpr timespec kPoll = {.tv_sec = 0, .tv_nsec = 2'000'000};
  while (me.turn.load(std::memory_order_acquire) == 0) {
    const long woken =
        syscall(SYS_futex, &me.turn, FUTEX_WAIT_PRIVATE, 0, &kPoll, nullptr, 0);
    if (woken < 0 && errno == ETIMEDOUT) {
      Sleeper next = nullptr;
      {
        const Locked lock = turn_lock_.Take();
        if (idle_) {
          PassIdleTime(lock);
          next = held_.next_deadline_ns(lock) <= virtual_clock_.Now(clock_)
                     ? GrantNext(lock, clock_)
                     : nullptr;
        }
      }
      Wake(next);
    }
  }
  me.turn.store(0, std::memory_order_relaxed);
}

void Recording::PassIdleTime(const Locked& /*lock*/) {
  const uint64_t now = HostNs();
  virtual_clock_.Skip(now - idle_since_ns_);
  idle_since_ns_ = now;
}

void Recording::BeginIdle(const Locked& /*lock*/) { idle_since_ns_ = HostNs(); }

// Where nobody can run, and nothing but time can change that.
void Recording::SkipToDeadline(const Locked& lock, uint64_t now_ticks) {
  const bool outside =
      uses_timers_ ||
      std::any_of(by_slot_.begin(), by_slot_.end(), [](const Thread* t) {
        return t != nullptr && t->state == Thread::State::kBlocked &&
               !t->held.has_value() && !t->waits_forever;
      });
  const uint64_t deadline = held_.next_deadline_ns(lock);
  if (!outside && deadline != VirtualClock::kNever) {
    const uint64_t now = virtual_clock_.Now(now_ticks);
    virtual_clock_.Skip(deadline - std::min(deadline, now));
    ReleaseDue(lock, now_ticks);
  }
}

void Recording::ReleaseDue(const Locked& lock, uint64_t now_ticks) {
  const uint64_t now = virtual_clock_.Now(now_ticks);
  if (now >= held_.next_deadline_ns(lock)) {
    MakeReady(lock, held_.TakeIf(lock, [now](const Thread& t) {
      return t.held->deadline_ns <= now;
    }));
  }
}

// A call may have woken who waits for the word at `addr`.
void Recording::ReleaseChanged(const Locked& lock, uint64_t addr) {
  if (!held_.empty(lock)) {
    MakeReady(lock, held_.TakeIf(lock, [&](const Thread& t) {
      return t.held->futex_addr == addr && t.held->Changed(memory_);
    }));
  }
}

// Thread `tid` if it is held and `signal` interrupts it. False: not so.
bool Recording::ReleaseSignalled(const Locked& lock, uint64_t tid,
                                 uint64_t signal) {
  const SignalAction* const action = actions_.Find(signal);
  if (action == nullptr || !action->is_handled()) {
    return false;
  }
  const std::vector<Thread*> released = held_.TakeIf(lock, [&](Thread& t) {
    t.interrupted = static_cast<uint64_t>(t.tid.as_int()) == tid &&
                    (t.signal_mask >> (signal - 1) & 1) == 0;
    return t.interrupted;
  });
  MakeReady(lock, released);
  return !released.empty();
}

void Recording::MakeReady(const Locked& lock,
                          const std::vector<Thread*>& threads) {
  for (Thread* thread : threads) {
    MakeReady(lock, *thread);
  }
}

// Clocks that the program reads show the virtual one. The kernel has just
// written there.
void Recording::ShowVirtualTime(const Thread& me) {
  const bool is_clock = me.call.number == SYS_clock_gettime;
  const uint64_t at = me.call.args[is_clock ? 1 : 0];
  const auto time = virtual_clock_.Show(
      is_clock ? me.call.args[0] : CLOCK_REALTIME, g_runner.block_end);
  if (!time || at == 0) {
    return;
  }
  if (is_clock) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the guest's memory is our own
    *reinterpret_cast<timespec*>(at) = *time;
  } else {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the guest's memory is our own
    *reinterpret_cast<timeval*>(at) = {.tv_sec = time->tv_sec,
                                       .tv_usec = time->tv_nsec / 1000};
  }
}

std::optional<time_t> Recording::SecondsOfCall() const {
  const Thread* me = g_runner.thread;
  if (me == nullptr || !me->in_syscall || me->call.number != SYS_time) {
    return std::nullopt;
  }
  const auto time = virtual_clock_.Show(CLOCK_REALTIME, g_runner.block_end);
  return time ? std::optional(time->tv_sec) : std::nullopt;
}

}  // namespace clew::recorder
