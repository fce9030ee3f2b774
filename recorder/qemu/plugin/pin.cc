// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/pin.h"

#include <sched.h>

namespace clew::recorder {

void PinToOneCpu() {
  static const int cpu = sched_getcpu();
  if (cpu < 0) {
    return;
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  (void)sched_setaffinity(0, sizeof(set), &set);
}

}  // namespace clew::recorder
