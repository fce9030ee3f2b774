// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/outcome_file.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace clew::recorder {
namespace {

constexpr int kRefusedExitStatus = 125;  // the recorder stopped the program

}  // namespace

void ExitProcess(int status) {
  syscall(SYS_exit_group, status);
  __builtin_unreachable();
}

void OutcomeFile::Write(const Outcome& outcome) {
  file_.Append(FormatOutcome(outcome));
  if (const Status closed = file_.Close(); !closed) {
    fprintf(stderr, "clew-qemu-plugin: %s\n", closed.error().message.c_str());
  }
}

void OutcomeFile::GiveUp(const std::string& why) {
  Outcome outcome;
  outcome.refusal = why;
  Write(outcome);
  ExitProcess(kRefusedExitStatus);
}

}  // namespace clew::recorder
