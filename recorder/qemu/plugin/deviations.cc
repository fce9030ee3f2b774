// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/deviations.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/linux/deviations.h"

namespace clew::recorder {
namespace {

LoadWord LoadFrom(const GuestMemory& memory) {
  return [&memory](uint64_t addr) { return memory.Load<uint64_t>(addr); };
}

}  // namespace

void Deviations::Note(const SyscallCall& call, int64_t result) {
  Add(DeviationOf(call.number, call.args, result, LoadFrom(context_.memory)));
}

void Deviations::NoteThreadEnd(uint64_t robust_list) {
  Add(DeviationOfThreadEnd(robust_list, LoadFrom(context_.memory)));
}

void Deviations::Add(const std::optional<std::string>& phrase) {
  if (!phrase || std::ranges::find(phrases_, *phrase) != phrases_.end()) {
    return;
  }
  if (context_.config.strict) {
    context_.GiveUp(fmt::format(
        "the recorder carries out otherwise than the kernel: {}; without "
        "--strict the run is recorded all the same",
        *phrase));
  }
  phrases_.push_back(*phrase);
}

}  // namespace clew::recorder
