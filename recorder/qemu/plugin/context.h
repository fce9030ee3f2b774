// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_CONTEXT_H_
#define CLEW_RECORDER_QEMU_PLUGIN_CONTEXT_H_

#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "recorder/qemu/guest_memory.h"
#include "recorder/qemu/plugin/outcome_file.h"
#include "recorder/qemu/plugin_config.h"
#include "recorder/qemu/size_limit.h"
#include "recorder/qemu/tracer.h"

namespace clew::recorder {

// Tells what QEMU knows about a page of the program.
PageProtection QemuPageProtection();

// What every part of a recording stands on: what was asked for, the program's
// memory, and the files that all of them write.
struct Context {
  [[nodiscard]] static Result<Context> Open(const PluginConfig& config);

  [[noreturn]] void GiveUp(const std::string& why) { outcome.GiveUp(why); }
  // Leaves all files to the process of which this is a copy.
  void Abandon();

  PluginConfig config;
  GuestMemory memory;
  std::unique_ptr<SizeLimit> limit;  // of all files but the outcome
  std::unique_ptr<Tracer> tracer;
  OutcomeFile outcome;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_CONTEXT_H_
