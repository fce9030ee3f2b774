// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/deviations.h"

#include <asm/unistd_64.h>

#include <algorithm>

#include "common/linux/deviations.h"

namespace clew::recorder {
namespace {

LoadWord LoadFrom(const GuestMemory& memory) {
  return [&memory](uint64_t addr) { return memory.Load<uint64_t>(addr); };
}

}  // namespace

void Deviations::Note(const Thread& me, int64_t result) {
  Add(DeviationOf(me.call.number, me.call.args, result,
                  LoadFrom(context_.memory)));
  if (me.call.number == __NR_set_robust_list && me.robust_list != 0) {
    Add(DeviationOfRobustList());
  }
}

void Deviations::NoteMxcsr(uint64_t addr) {
  Add(DeviationOfMxcsr(context_.memory.Load<uint32_t>(addr).value_or(0)));
}

void Deviations::NoteX87Status() { Add(DeviationOfX87Status()); }

void Deviations::NoteThreadEnd(uint64_t robust_list) {
  Add(DeviationOfThreadEnd(robust_list, LoadFrom(context_.memory)));
}

void Deviations::Add(const std::optional<std::string>& phrase) {
  if (!phrase || std::ranges::find(phrases_, *phrase) != phrases_.end()) {
    return;
  }
  if (context_.config.strict) {
    context_.GiveUp(StrictRefusal(*phrase));
  }
  phrases_.push_back(*phrase);
}

std::vector<std::string> Deviations::phrases() const {
  std::vector<std::string> all = phrases_;
  for (const std::string& phrase : child_notes_.All()) {
    if (std::ranges::find(all, phrase) == all.end()) {
      all.push_back(phrase);
    }
  }
  return all;
}

}  // namespace clew::recorder
