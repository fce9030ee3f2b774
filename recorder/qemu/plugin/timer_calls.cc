// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/timer_calls.h"

namespace clew::recorder {

void TimerCalls::CatchUp() {
  if (!timers_.empty()) {
    if (const auto expired = timers_.ExpiredNs(HostNs())) {
      SkipTo(*expired);
    }
  }
}

void TimerCalls::EndWait(uint64_t end_ns) {
  if (end_ns != VirtualClock::kNever) {
    SkipTo(end_ns + lateness_.DrawNs());
  }
}

void TimerCalls::SkipTo(uint64_t ns) {
  time_.SkipTo(turns_.Lock(), ns, g_runner.block_end);
}

}  // namespace clew::recorder
