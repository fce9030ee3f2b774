// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include "recorder/qemu/plugin/program_start.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include "common/text/path_names.h"
#include "recorder/qemu/plugin/code_recorder.h"
#include "recorder/qemu/start_writer.h"

namespace clew::recorder {
namespace {

// What the kernel puts above the stack pointer at the start: argc, argv, NULL,
// envp, NULL, auxv.
struct InitialStack {
  std::vector<std::string> arguments;
  std::vector<Elf64_auxv_t> auxv;

  uint64_t Aux(uint64_t type) const {
    const auto found =
        std::find_if(auxv.begin(), auxv.end(),
                     [&](const Elf64_auxv_t& a) { return a.a_type == type; });
    return found == auxv.end() ? 0 : found->a_un.a_val;
  }
};

InitialStack ReadInitialStack(uint64_t rsp, const GuestMemory& memory) {
  constexpr size_t kTextMax = 4096;
  InitialStack stack;
  uint64_t at = rsp + 8;
  for (;; at += 8) {
    const uint64_t argument = memory.Load<uint64_t>(at).value_or(0);
    if (argument == 0) {
      break;
    }
    stack.arguments.push_back(memory.Text(argument, kTextMax));
  }
  at += 8;
  while (memory.Load<uint64_t>(at).value_or(0) != 0) {
    at += 8;
  }
  at += 8;
  for (;; at += sizeof(Elf64_auxv_t)) {
    const auto entry = memory.Load<Elf64_auxv_t>(at);
    if (!entry.has_value()) {
      return stack;
    }
    stack.auxv.push_back(*entry);
    if (entry->a_type == AT_NULL) {
      return stack;
    }
  }
}

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

std::string Join(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    line += (line.empty() ? "" : " ") + word;
  }
  return line;
}

}  // namespace

Status ProgramStart::Write(const Thread& me, uint64_t ip, uint64_t now) {
  stack_addr_ = me.env.gpr(kRsp);
  const InitialStack stack = ReadInitialStack(stack_addr_, context_.memory);
  const auto auxv_bytes = std::as_bytes(std::span(stack.auxv));
  auxv_.assign(auxv_bytes.begin(), auxv_bytes.end());
  program_ = BaseName(stack.arguments.empty() ? "" : stack.arguments[0]);
  arguments_ = Join(stack.arguments);
  brk_ = InitialBrk(stack, context_.memory);
  CLEW_ASSIGN_OR_RETURN(regions, Regions());
  NameMappings(me.tid, regions, now);
  StartState state;
  state.thread = me.tid;
  state.gpr = me.env.Gprs();
  state.rip = TraceeAddr(ip);
  state.rflags = me.env.rflags();
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
