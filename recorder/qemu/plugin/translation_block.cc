// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/translation_block.h"

#include <algorithm>
#include <span>

#include "common/x86/page.h"
#include "recorder/qemu/plugin/guest_env.h"

namespace clew::recorder {
namespace {

// The bytes are read from memory: for an instruction that crosses a page QEMU's
// own copy is short.
std::span<const uint8_t> BytesOf(const qemu_plugin_insn* insn) {
  const uint64_t addr = qemu_plugin_insn_vaddr(insn);
  return {GuestPointer<const uint8_t>(addr), qemu_plugin_insn_size(insn)};
}

void DescribeLast(const qemu_plugin_insn* last, TranslationBlock& block) {
  const std::span<const uint8_t> bytes = BytesOf(last);
  const x86::Branch insn = x86::ClassifyBranch(bytes);
  block.branch_class = insn.branch_class;
  block.last_ip = qemu_plugin_insn_vaddr(last);
  block.next_ip = block.last_ip + bytes.size();
  block.target = insn.DirectTarget(TraceeAddr(block.next_ip)).as_int();
  block.last_input = x86::ClassifyInput(bytes);
  block.last_may_be_put_off =
      block.insn_count > 1 &&
      block.last_ip % kPageBytes >= kPageBytes - x86::kInsnBytesMax;
}

}  // namespace

uint32_t TranslationBlock::IndexOf(uint64_t addr) const {
  const auto found = std::find(offsets.begin(), offsets.end(), addr - ip);
  return static_cast<uint32_t>(found - offsets.begin());
}

TranslationBlock& BlockTable::Translate(qemu_plugin_tb* tb) {
  auto* block = new TranslationBlock;
  block->ip = qemu_plugin_tb_vaddr(tb);
  block->insn_count = static_cast<uint32_t>(qemu_plugin_tb_n_insns(tb));
  for (uint32_t i = 0; i < block->insn_count; ++i) {
    block->offsets.push_back(static_cast<uint32_t>(
        qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, i)) - block->ip));
  }
  DescribeLast(qemu_plugin_tb_get_insn(tb, block->insn_count - 1), *block);
  {
    const std::lock_guard lock(mutex_);
    block->is_handler = handlers_.contains(block->ip);
    blocks_.emplace(block->ip, block);
    ListCode(tb, *block);
  }
  qemu_plugin_register_vcpu_tb_exec_cb(tb, callbacks_.on_block,
                                       kQemuCallbackNoRegs, block);
  AddInputPoints(tb, *block);
  AddMemoryPoints(tb, *block);
  AddDeviantPoints(tb, *block);
  return *block;
}

// REQUIRES the lock. An instruction that QEMU puts off has been cut where the
// page ends; it comes again, whole, as the first of a block.
void BlockTable::ListCode(const qemu_plugin_tb* tb,
                          const TranslationBlock& block) {
  const uint32_t count = block.insn_count - (block.last_may_be_put_off ? 1 : 0);
  for (uint32_t i = 0; i < count; ++i) {
    const qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(tb, i);
    code_list_.Add(qemu_plugin_insn_vaddr(insn), BytesOf(insn));
  }
}

Status BlockTable::CloseCodeList() {
  const std::lock_guard lock(mutex_);
  return code_list_.file().Close();
}

void BlockTable::AddHandler(uint64_t ip) {
  const std::lock_guard lock(mutex_);
  handlers_.insert(ip);
  const auto [begin, end] = blocks_.equal_range(ip);
  for (auto it = begin; it != end; ++it) {
    it->second->is_handler = true;
  }
}

// The first instruction needs none: the block's start is one.
void BlockTable::AddMemoryPoints(qemu_plugin_tb* tb, TranslationBlock& block) {
  for (uint32_t i = 1; i < block.insn_count; ++i) {
    qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(tb, i);
    if (AccessesSharedMemory(BytesOf(insn))) {
      auto* const index = reinterpret_cast<void*>(uintptr_t{i});
      qemu_plugin_register_vcpu_insn_exec_cb(insn, callbacks_.on_memory,
                                             kQemuCallbackNoRegs, index);
      block.copies_registers = true;
    }
  }
}

// Behind an instruction that QEMU leaves to a helper, its results are in the
// CPU state until the next one.
void BlockTable::AddInputPoints(qemu_plugin_tb* tb, TranslationBlock& block) {
  for (uint32_t i = 0; i + 1 < block.insn_count; ++i) {
    const qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(tb, i);
    const x86::InputInsn kind = x86::ClassifyInput(BytesOf(insn));
    if (kind != x86::InputInsn::kNone) {
      auto* point = new InputPoint{
          .ip = qemu_plugin_insn_vaddr(insn), .kind = kind, .index = i};
      qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_tb_get_insn(tb, i + 1),
                                             callbacks_.on_input,
                                             kQemuCallbackNoRegs, point);
    }
  }
}

void BlockTable::AddDeviantPoints(qemu_plugin_tb* tb,
                                  const TranslationBlock& block) {
  for (uint32_t i = 0; i < block.insn_count; ++i) {
    qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(tb, i);
    switch (ClassifyDeviant(BytesOf(insn))) {
      case DeviantInsn::kLoadMxcsr:
        qemu_plugin_register_vcpu_mem_cb(insn, callbacks_.on_mxcsr,
                                         kQemuCallbackNoRegs, kQemuAccesses,
                                         nullptr);
        break;
      case DeviantInsn::kStoreX87Status:
        qemu_plugin_register_vcpu_insn_exec_cb(insn, callbacks_.on_x87_status,
                                               kQemuCallbackNoRegs, nullptr);
        break;
      case DeviantInsn::kNone:
        break;
    }
  }
}

}  // namespace clew::recorder
