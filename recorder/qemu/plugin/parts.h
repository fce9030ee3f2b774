// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_PARTS_H_
#define CLEW_RECORDER_QEMU_PLUGIN_PARTS_H_

#include <utility>

#include "recorder/qemu/calls/file_mappings.h"
#include "recorder/qemu/plugin/child_notes.h"
#include "recorder/qemu/plugin/code_recorder.h"
#include "recorder/qemu/plugin/context.h"
#include "recorder/qemu/plugin/deviations.h"
#include "recorder/qemu/plugin/ending.h"
#include "recorder/qemu/plugin/input_logs.h"
#include "recorder/qemu/plugin/program_start.h"
#include "recorder/qemu/plugin/signal_recorder.h"
#include "recorder/qemu/plugin/timer_calls.h"
#include "recorder/qemu/plugin/turns/program_time.h"
#include "recorder/qemu/plugin/turns/thread_table.h"
#include "recorder/qemu/plugin/turns/time_limit_watch.h"
#include "recorder/qemu/plugin/turns/timed_waits.h"
#include "recorder/qemu/plugin/turns/turns.h"
#include "recorder/qemu/plugin/virtual_cores.h"

namespace clew::recorder {

// The parts of a recording. Each refers to those above it alone.
struct Parts {
  Parts(Context opened, const BlockCallbacks& callbacks, CodeFiles code_files,
        ChildNotes notes)
      : context(std::move(opened)),
        child_notes(notes),
        time(context.config.timeout_s),
        code(context, time, callbacks, std::move(code_files)),
        turns(context, time, threads, code),
        inputs(context),
        start(context),
        signals(context, threads),
        deviations(context, child_notes),
        cores(context.config.scheduler.cores, threads),
        waits(context, time, threads, turns, signals),
        timers(time, turns, context.config.scheduler.seed),
        ending({.context = context,
                .time = time,
                .threads = threads,
                .turns = turns,
                .code = code,
                .inputs = inputs,
                .start = start,
                .files = files,
                .deviations = deviations}),
        watch(context, time, turns, ending) {}
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  Context context;
  ChildNotes child_notes;
  ThreadTable threads;
  ProgramTime time;
  CodeRecorder code;
  Turns turns;
  InputLogs inputs;
  ProgramStart start;
  FileMappings files;
  SignalRecorder signals;
  Deviations deviations;
  VirtualCores cores;
  TimedWaits waits;
  TimerCalls timers;
  Ending ending;
  TimeLimitWatch watch;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_PARTS_H_
