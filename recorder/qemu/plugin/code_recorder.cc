// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/code_recorder.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "recorder/qemu/plugin/guest_env.h"
#include "recorder/qemu/plugin/thread.h"
#include "recorder/qemu/raw_code.h"

namespace clew::recorder {
namespace {

std::span<const std::byte> GuestBytes(uint64_t addr, uint64_t size_bytes) {
  return {GuestPointer<const std::byte>(addr), static_cast<size_t>(size_bytes)};
}

}  // namespace

Result<CodeFiles> CodeFiles::Open(const Context& context) {
  const std::string& folder = context.config.folder;
  SizeLimit* const limit = context.limit.get();
  CLEW_ASSIGN_OR_RETURN(raw_code, RawFile::Create(RawCodePath(folder), limit));
  CLEW_ASSIGN_OR_RETURN(code_list,
                        RawFile::Create(CodeListPath(folder), limit));
  return CodeFiles{.raw_code = std::move(raw_code),
                   .code_list = std::move(code_list)};
}

CodeRecorder::CodeRecorder(Context& context, const ProgramTime& time,
                           const BlockCallbacks& callbacks, CodeFiles files)
    : context_(context),
      time_(time),
      blocks_(callbacks, std::move(files.code_list)),
      raw_code_(std::move(files.raw_code)),
      versions_shown_(context.config.scheduler.cores, 0) {}

void CodeRecorder::Translate(qemu_plugin_tb* tb) {
  TranslationBlock& block = blocks_.Translate(tb);
  const Lock lock(mutex_);
  MapInitialCode(lock);
  const auto look =
      code_.LookAt(block.ip, GuestBytes(block.ip, block.next_ip - block.ip));
  block.is_generated = look.generated;
  block.code_version = look.version;
  for (const CodeChange& change : look.changes) {
    WriteChange(lock, change);
  }
}

// What QEMU mapped before the first block, which is translated before it runs
// and so before the start state is written.
void CodeRecorder::MapInitialCode(const Lock& /*lock*/) {
  if (initial_code_mapped_) {
    return;
  }
  initial_code_mapped_ = true;
  const auto regions = ListRegions(QemuPageProtection(), 0, 0);
  if (!regions) {
    context_.GiveUp(regions.error().message);
  }
  for (const ExecMapping& mapping : CodeOfFiles(*regions)) {
    code_.Map(mapping);
  }
}

void CodeRecorder::WriteChange(const Lock& /*lock*/, const CodeChange& change) {
  if (change.replaces && !context_.config.encoder.tsc) {
    context_.GiveUp(fmt::format(
        "the program replaced code at {:#x}: without timing packets nothing "
        "tells from when on; record without '--timing none'",
        change.addr));
  }
  const RawCode head{.time = time_.Ticks(),
                     .addr = change.addr,
                     .size_bytes = change.size_bytes,
                     .replaces = change.replaces ? 1u : 0u};
  raw_code_.Append(std::as_bytes(std::span(&head, 1)));
  raw_code_.Append(GuestBytes(change.addr, change.size_bytes));
}

void CodeRecorder::ShowVersion(const TranslationBlock& block) {
  Thread& me = *g_runner.thread;
  if (block.code_version <= versions_shown_[me.core]) {
    return;
  }
  versions_shown_[me.core] = block.code_version;
  if (!context_.config.encoder.tsc) {
    return;
  }
  CoreEncoder& encoder = *g_runner.encoder;
  if (encoder.enabled()) {
    encoder.AdvanceTime(TscTicks(g_runner.block_end));
    encoder.Interrupt(TraceeAddr(block.ip));
    encoder.Enable(TraceeAddr(block.ip), EnableCause::kTimed);
  } else if (me.enable_cause == EnableCause::kKernelReturn) {
    me.enable_cause = EnableCause::kTimed;
  }
}

void CodeRecorder::Map(const ExecMapping& mapping) {
  const Lock lock(mutex_);
  code_.Map(mapping);
}

void CodeRecorder::Release(const SyscallCall& call, uint64_t result) {
  const Lock lock(mutex_);
  code_.ReleaseChangedBy(call, result);
}

Status CodeRecorder::Close() {
  const Status listed = blocks_.CloseCodeList();
  const Status closed = raw_code_.Close();
  return listed ? closed : listed;
}

void CodeRecorder::Abandon() {
  blocks_.Abandon();
  raw_code_.Abandon();
}

}  // namespace clew::recorder
