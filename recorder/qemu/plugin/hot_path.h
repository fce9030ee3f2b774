// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_HOT_PATH_H_
#define CLEW_RECORDER_QEMU_PLUGIN_HOT_PATH_H_

#include "recorder/pt_encoder/core_encoder.h"
#include "recorder/qemu/plugin/thread.h"
#include "recorder/qemu/plugin/translation_block.h"

namespace clew::recorder {

// True if `next` is one more iteration of the REP instruction that `block`
// ends with: QEMU enters the instruction anew for each.
inline bool IsNextIteration(const TranslationBlock& block, uint64_t next) {
  return block.branch_class == x86::BranchClass::kRepString &&
         next == block.last_ip;
}

// Tells the core's trace how `block` ended, now that execution goes on at
// `next`; g_runner.block_end becomes the time at which it did.
inline void CloseBlock(const TranslationBlock& block, uint64_t next) {
  CoreEncoder& encoder = *g_runner.encoder;
  if (block.last_may_be_put_off && next == block.last_ip) [[unlikely]] {
    --g_runner.block_end;  // QEMU put the last instruction off
    return;
  }
  encoder.AdvanceTime(TscTicks(g_runner.block_end));
  encoder.Branch(block.branch_class, TraceeAddr(block.next_ip),
                 TraceeAddr(next));
}

// Tells the core's trace that a signal took execution away from `block` at
// `ip`: `inside` it, before the instruction there, or behind its last
// instruction.
inline void LeaveBlockBySignal(const TranslationBlock& block, uint64_t ip,
                               bool inside) {
  if (inside) {
    g_runner.block_end = g_runner.block_start + block.IndexOf(ip);
  } else {
    CloseBlock(block, ip);
  }
  g_runner.encoder->AdvanceTime(TscTicks(g_runner.block_end));
  const bool by_int3 = !inside && ip == block.next_ip &&
                       block.branch_class == x86::BranchClass::kFar;
  if (by_int3) {
    g_runner.encoder->FarTransfer();
  } else {
    g_runner.encoder->Interrupt(TraceeAddr(ip));
  }
}

// The callbacks that translated code makes.
BlockCallbacks HotPathCallbacks();

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_HOT_PATH_H_
