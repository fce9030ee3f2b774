// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/program_start.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>

#include "recorder/qemu/initial_stack.h"
#include "recorder/qemu/start_writer.h"

namespace clew::recorder {
namespace {

// Where QEMU lets the heap begin: at the first page behind the program.
uint64_t InitialBrk(const InitialStack& stack, const GuestMemory& memory) {
  const uint64_t headers = stack.Aux(AT_PHDR);
  uint64_t bias = 0;
  uint64_t end = 0;
  for (uint64_t i = 0; i < stack.Aux(AT_PHNUM); ++i) {
    const auto header =
        memory.Load<Elf64_Phdr>(headers + i * sizeof(Elf64_Phdr));
    if (!header.has_value() || header->p_type != PT_LOAD) {
      continue;
    }
    if (header->p_offset == 0) {
      bias = headers - sizeof(Elf64_Ehdr) - header->p_vaddr;
    }
    end = std::max(end, header->p_vaddr + header->p_memsz);
  }
  return RoundUpToPage(bias + end);
}

}  // namespace

Status ProgramStart::Write(const Thread& me, uint64_t ip, uint64_t now) {
  stack_addr_ = me.env.gpr(kRsp);
  const InitialStack stack = ReadInitialStack(stack_addr_, context_.memory);
  auxv_ = stack.AuxvBytes();
  program_ = stack.ProgramName();
  arguments_ = stack.CommandLine();
  brk_ = InitialBrk(stack, context_.memory);
  CLEW_ASSIGN_OR_RETURN(regions, Regions());
  NameMappings(me.tid, regions, now);
  StartState state;
  state.first.thread = me.tid;
  state.first.gpr = me.env.Gprs();
  state.first.rip = TraceeAddr(ip);
  state.first.rflags = me.env.rflags();
  state.brk = TraceeAddr(brk_);
  return WriteStart(StartPath(context_.config.folder), state, regions,
                    context_.memory);
}

void ProgramStart::NameMappings(Tid main,
                                const std::vector<GuestRegion>& regions,
                                uint64_t now) {
  Tracer& tracer = *context_.tracer;
  tracer.Comm(0, main, now, true, program_);
  for (const ExecMapping& mapping : CodeOfFiles(regions)) {
    tracer.Mmap(0, main, now, mapping);
  }
}

Result<std::vector<GuestRegion>> ProgramStart::Regions() const {
  return ListRegions(QemuPageProtection(), stack_addr_, brk_, memory_end_);
}

DumpedProcess ProgramStart::Describe() const {
  DumpedProcess dump;
  dump.process = getpid();
  dump.program = program_;
  dump.arguments = arguments_;
  dump.auxv = auxv_;
  return dump;
}

}  // namespace clew::recorder
