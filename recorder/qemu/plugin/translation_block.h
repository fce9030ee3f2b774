// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#ifndef CLEW_RECORDER_QEMU_PLUGIN_TRANSLATION_BLOCK_H_
#define CLEW_RECORDER_QEMU_PLUGIN_TRANSLATION_BLOCK_H_

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "common/x86/branch.h"
#include "common/x86/input_insn.h"
#include "recorder/qemu/code_list.h"
#include "recorder/qemu/insn_effects.h"
#include "recorder/qemu/plugin/qemu_api.h"

namespace clew::recorder {

// A translation block: instructions that follow one another in memory, of which
// only the last may be a branch. QEMU may translate an address more than once.
// Never freed: generated code refers to it.
struct TranslationBlock {
  uint64_t ip = 0;
  uint32_t insn_count = 0;
  x86::BranchClass branch_class = x86::BranchClass::kNone;
  // QEMU 7.2 counts an instruction that it then puts off because it crosses
  // into the next page; the next block is at last_ip if it did.
  bool last_may_be_put_off = false;
  bool copies_registers = false;  // a thread may be stopped inside
  bool is_handler = false;        // of a signal
  bool is_generated = false;      // no file holds it
  uint64_t code_version = 0;      // of GeneratedCode
  x86::InputInsn last_input = x86::InputInsn::kNone;
  uint64_t last_ip = 0;
  uint64_t next_ip = 0;           // behind the last instruction
  uint64_t target = 0;            // of the last one, if direct
  std::vector<uint32_t> offsets;  // of each instruction from ip

  uint64_t IpOf(uint64_t index) const { return ip + offsets[index]; }
  // The index of the instruction at `addr`; insn_count where there is none.
  uint32_t IndexOf(uint64_t addr) const;
};

// A place inside a block behind an instruction whose result must be recorded.
struct InputPoint {
  uint64_t ip = 0;  // of that instruction
  x86::InputInsn kind = x86::InputInsn::kNone;
  uint32_t index = 0;  // of that instruction in its block
};

// Callbacks from translated code, in hot_path.cc.
struct BlockCallbacks {
  QemuUdataCallback on_block;       // data: TranslationBlock*
  QemuUdataCallback on_memory;      // data: the instruction's index
  QemuUdataCallback on_input;       // data: InputPoint*
  QemuMemoryCallback on_mxcsr;      // LDMXCSR has loaded it
  QemuUdataCallback on_x87_status;  // before FNSTSW
};

// All blocks. Thread-safe: QEMU translates from any thread.
class BlockTable {
 public:
  BlockTable(const BlockCallbacks& callbacks, RawFile code_list)
      : callbacks_(callbacks), code_list_(std::move(code_list)) {}
  // Describes `tb` and registers its callbacks.
  TranslationBlock& Translate(qemu_plugin_tb* tb);
  // `ip` became the address of a signal handler.
  void AddHandler(uint64_t ip);
  // Writes the list of the code out. Later code is not in it.
  [[nodiscard]] Status CloseCodeList();
  // In a copy of the process: without a lock, and without writing.
  void Abandon() { code_list_.file().Abandon(); }

 private:
  void ListCode(const qemu_plugin_tb* tb, const TranslationBlock& block);
  void AddMemoryPoints(qemu_plugin_tb* tb, TranslationBlock& block);
  void AddInputPoints(qemu_plugin_tb* tb, TranslationBlock& block);
  void AddDeviantPoints(qemu_plugin_tb* tb, const TranslationBlock& block);

  BlockCallbacks callbacks_;
  std::mutex mutex_;
  CodeListWriter code_list_;
  std::unordered_set<uint64_t> handlers_;
  std::unordered_multimap<uint64_t, TranslationBlock*> blocks_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_PLUGIN_TRANSLATION_BLOCK_H_
