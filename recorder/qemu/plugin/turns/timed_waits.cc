// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/turns/timed_waits.h"

#include <algorithm>

#include "common/units.h"
#include "recorder/qemu/calls/sent_signal.h"
#include "recorder/qemu/plugin/turns/settling.h"

namespace clew::recorder {
namespace {

constexpr timespec kOver = {};  // a time limit in the past, and of no length
// An absolute one that no clock of the host reaches.
constexpr timespec kFar = {.tv_sec = int64_t{1} << 33, .tv_nsec = 0};
// How long a thread that sends a signal waits before it looks again.
constexpr uint64_t kMomentTicks = 100;

}  // namespace

std::optional<TimedWait> TimedWaits::HoldUntilDue(Thread& me,
                                                  const SyscallCall& call) {
  const GuestMemory& memory = context_.memory;
  auto wait = ParseTimedWait(call, memory, time_.clock(), g_runner.block_end);
  if (!wait || !memory.can_write()) {
    return std::nullopt;
  }
  me.interrupted = false;
  if (timers_signal_) {
    return wait;
  }
  if (!IsDue(*wait) && wait->deadline_ns != VirtualClock::kNever) {
    wait->deadline_ns += lateness_.DrawNs();
  }
  while (!IsDue(*wait) && !me.interrupted && !wait->Changed(memory)) {
    turns_.Hold(me, *wait);
  }
  return wait;
}

bool TimedWaits::IsDue(const TimedWait& wait) const {
  return time_.clock().Now(g_runner.block_end) >= wait.deadline_ns;
}

std::optional<uint64_t> TimedWaits::ShowLimit(Thread& me,
                                              const TimedWait& wait) {
  if (IsDue(wait) || wait.Changed(context_.memory)) {
    me.interrupted = false;
    me.limit_is_over = SetLimit(me, wait.timespec_addr, kOver);
    return std::nullopt;
  }
  if (wait.absolute) {  // else it may be over
    (void)SetLimit(me, wait.timespec_addr,
                   timers_signal_ ? OnHost(wait) : kFar);
  }
  return timers_signal_ ? std::optional(wait.deadline_ns) : std::nullopt;
}

// The host's clock at which as much time has passed as is left of `wait`.
timespec TimedWaits::OnHost(const TimedWait& wait) const {
  if (wait.deadline_ns == VirtualClock::kNever) {
    return kFar;
  }
  timespec now = {};
  clock_gettime(static_cast<clockid_t>(wait.clock), &now);
  timespec at =
      ToTimespec(wait.deadline_ns - time_.clock().Now(g_runner.block_end));
  at.tv_sec += now.tv_sec;
  at.tv_nsec += now.tv_nsec;
  if (!IsTime(at)) {
    at.tv_nsec -= kNsPerSecond;
    ++at.tv_sec;
  }
  return at;
}

bool TimedWaits::ShowsOtherLimit(const std::vector<MemoryRange>& ranges) const {
  return std::ranges::any_of(threads_.all(), [&](const Thread* t) {
    return t->time_limit.has_value() &&
           std::ranges::any_of(ranges, [&](const MemoryRange& range) {
             return t->time_limit_addr < range.addr + range.size_bytes &&
                    range.addr < t->time_limit_addr + sizeof(timespec);
           });
  });
}

void TimedWaits::LetBeInterrupted(Thread& me, const SyscallCall& call) {
  const auto sent = SignalOf(call);
  if (!sent || !turns_.ReleaseIf([&](Thread& t) {
        t.interrupted = static_cast<uint64_t>(t.tid.as_int()) == sent->tid &&
                        signals_.Interrupts(t, sent->signal);
        return t.interrupted;
      })) {
    return;
  }
  const auto on_its_way = [](const Thread* t) {
    return t->interrupted && t->state != Thread::State::kBlocked;
  };
  while (std::ranges::any_of(threads_.all(), on_its_way)) {
    turns_.Hold(me, {.deadline_ns =
                         time_.clock().Now(g_runner.block_end + kMomentTicks)});
  }
  for (Thread* thread : threads_.all()) {
    if (thread->interrupted) {
      AwaitAsleep(*thread);
      RestoreLimit(*thread);  // QEMU has read it
      thread->interrupted = false;
    }
  }
}

// Returns false if the memory cannot be written.
bool TimedWaits::SetLimit(Thread& me, uint64_t addr, const timespec& limit) {
  me.time_limit = context_.memory.Load<timespec>(addr);
  me.time_limit_addr = addr;
  if (!context_.memory.Write(addr, &limit, sizeof(limit))) {
    me.time_limit.reset();
    return false;
  }
  return true;
}

void TimedWaits::RestoreLimit(Thread& me) {
  if (me.time_limit.has_value()) {
    (void)context_.memory.Write(me.time_limit_addr, &*me.time_limit,
                                sizeof(timespec));  // it could be written
    me.time_limit.reset();
  }
  me.limit_is_over = false;
}

}  // namespace clew::recorder
