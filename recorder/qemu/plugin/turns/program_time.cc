// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/turns/program_time.h"

#include "common/units.h"
#include "recorder/qemu/plugin/thread.h"

namespace clew::recorder {

uint64_t ProgramTime::Ticks() const {
  const uint64_t block_end =
      std::atomic_ref(g_runner.block_end).load(std::memory_order_relaxed);
  return std::max(turn_end(), block_end);
}

void ProgramTime::SkipTo(const Locked& /*lock*/, uint64_t deadline_ns,
                         uint64_t ticks) {
  const uint64_t now = clock_.Now(ticks);
  clock_.Skip(deadline_ns - std::min(deadline_ns, now));
}

void ProgramTime::BeginIdle(const Locked& /*lock*/) {
  idle_since_ns_ = HostNs();
}

void ProgramTime::PassIdle(const Locked& /*lock*/) {
  const uint64_t now = HostNs();
  clock_.Skip(now - idle_since_ns_);
  idle_since_ns_ = now;
}

bool ProgramTime::IsOver(uint64_t ticks) const {
  return limit_s_ > 0 &&
         InsnsUntil(ticks) * VirtualClock::kNsPerTick + waited_ns_ >=
             limit_s_ * kNsPerSecond;
}

}  // namespace clew::recorder
