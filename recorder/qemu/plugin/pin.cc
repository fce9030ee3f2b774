// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/pin.h"

#include <sched.h>

namespace clew::recorder {

namespace {

struct Before {
  Before() { known = sched_getaffinity(0, sizeof(cpus), &cpus) == 0; }
  bool known = false;
  cpu_set_t cpus;
};

const Before& BeforePinning() {
  static const Before before;
  return before;
}

}  // namespace

void PinToOneCpu() {
  (void)BeforePinning();
  static const int cpu = sched_getcpu();
  if (cpu < 0) {
    return;
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  (void)sched_setaffinity(0, sizeof(set), &set);
}

void Unpin() {
  const Before& before = BeforePinning();
  if (before.known) {
    (void)sched_setaffinity(0, sizeof(before.cpus), &before.cpus);
  }
}

}  // namespace clew::recorder
