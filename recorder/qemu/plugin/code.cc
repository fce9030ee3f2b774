// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <cstring>

#include "recorder/qemu/plugin/recording.h"
#include "recorder/qemu/raw_code.h"

// Code that no file holds: its bytes are recorded when QEMU translates it,
// which is before it runs first and after it was changed.

namespace clew::recorder {
namespace {

std::span<const std::byte> BytesOf(const Block& block) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the guest's memory is our own
  return {reinterpret_cast<const std::byte*>(block.ip),
          static_cast<size_t>(block.next_ip - block.ip)};
}

}  // namespace

// Any thread that QEMU translates for, with the turn or without.
void Recording::Translate(qemu_plugin_tb* tb) {
  clew::recorder::Block& block = blocks_.Translate(tb);
  const std::lock_guard lock(code_mutex_);
  MapInitialCode();
  const auto look = code_.LookAt(block.ip, BytesOf(block));
  block.is_generated = look.generated;
  block.code_version = look.version;
  for (const CodeChange& change : look.changes) {
    WriteCodeChange(change);
  }
}

// They borrow the names of the regions.
std::vector<ExecMapping> Recording::CodeOfFiles(
    const std::vector<GuestRegion>& regions) {
  std::vector<ExecMapping> mappings;
  for (const GuestRegion& region : regions) {
    if ((region.prot & kProtExec) != 0 && region.name.starts_with('/')) {
      mappings.push_back({.addr = region.addr,
                          .size_bytes = region.size_bytes,
                          .file_offset = region.file_offset,
                          .prot = region.prot,
                          .path = region.name});
    }
  }
  return mappings;
}

// What QEMU mapped before the first block, which is translated before it runs
// and so before the start state is written. REQUIRES the lock.
void Recording::MapInitialCode() {
  if (initial_code_mapped_) {
    return;
  }
  initial_code_mapped_ = true;
  const auto regions = ListRegions(QemuPageProtection(), 0, 0);
  if (!regions) {
    GiveUp(regions.error().message);
  }
  for (const ExecMapping& mapping : CodeOfFiles(*regions)) {
    MapCode(mapping);
  }
}

void Recording::WriteCodeChange(const CodeChange& change) {
  if (change.replaces && !session_.encoder.tsc) {
    GiveUp(fmt::format(
        "the program replaced code at {:#x}: without timing packets nothing "
        "tells from when on; record without '--timing none'",
        change.addr));
  }
  const RawCode head{.time = std::max(g_runner.block_end, clock_),
                     .addr = change.addr,
                     .size_bytes = change.size_bytes,
                     .replaces = change.replaces ? 1u : 0u};
  raw_code_.Append(std::as_bytes(std::span(&head, 1)));
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the guest's memory is our own
  raw_code_.Append({reinterpret_cast<const std::byte*>(change.addr),
                    static_cast<size_t>(change.size_bytes)});
}

// The trace of the core of the thread that has the turn tells the time before a
// version of code that it did not show yet: a reader learns from when on it
// holds.
void Recording::ShowVersion(const clew::recorder::Block& block) {
  Thread& me = *g_runner.thread;
  if (block.code_version <= versions_shown_[me.core]) {
    return;
  }
  versions_shown_[me.core] = block.code_version;
  if (!session_.encoder.tsc) {
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

// REQUIRES the lock.
void Recording::MapCode(const ExecMapping& mapping) {
  code_.MapFile(mapping.addr, mapping.size_bytes);
  if ((mapping.prot & PROT_WRITE) != 0) {
    code_.Release(mapping.addr, mapping.size_bytes);
  }
}

// After a call that changed what is mapped.
void Recording::ReleaseCode(const SyscallCall& call, uint64_t result) {
  const auto& args = call.args;
  const std::lock_guard lock(code_mutex_);
  switch (call.number) {
    case SYS_mmap:
      code_.Release(result, args[1]);
      return;
    case SYS_munmap:
      code_.Release(args[0], args[1]);
      return;
    case SYS_mprotect:
    case SYS_pkey_mprotect:
      if ((args[2] & PROT_WRITE) != 0) {
        code_.Release(args[0], args[1]);
      }
      return;
    case SYS_mremap:
      code_.Release(args[0], args[1]);
      code_.Release(result, args[2]);
      return;
    default:
      return;
  }
}

}  // namespace clew::recorder
