// Copyright (C) the clew authors.
// SPDX-License-Identifier: GPL-2.0-or-later
//
// This file is part of the module that is loaded into QEMU.

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "recorder/qemu/plugin/hot_path.h"
#include "recorder/qemu/plugin/recording.h"
#include "recorder/qemu/start_writer.h"

// The state at the program's first instruction.

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
  return (bias + end + kPageBytes - 1) / kPageBytes * kPageBytes;
}

std::string BaseName(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::string Join(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    line += (line.empty() ? "" : " ") + word;
  }
  return line;
}

}  // namespace

PageProtection QemuPageProtection() {
  return [](uint64_t addr) -> std::optional<uint32_t> {
    const int flags = page_get_flags(addr);
    if ((flags & kQemuPageValid) == 0) {
      return std::nullopt;
    }
    const bool writable = (flags & (kQemuPageWrite | kQemuPageWriteOrg)) != 0;
    return ((flags & kQemuPageRead) != 0 ? kProtRead : 0) |
           (writable ? kProtWrite : 0) |
           ((flags & kQemuPageExec) != 0 ? kProtExec : 0);
  };
}

Status Recording::WriteStartState(Thread& me, uint64_t ip) {
  stack_addr_ = me.env.gpr(kRsp);
  const InitialStack stack = ReadInitialStack(stack_addr_, memory_);
  const auto auxv_bytes = std::as_bytes(std::span(stack.auxv));
  auxv_.assign(auxv_bytes.begin(), auxv_bytes.end());
  program_ = BaseName(stack.arguments.empty() ? "" : stack.arguments[0]);
  arguments_ = Join(stack.arguments);
  brk_ = InitialBrk(stack, memory_);
  CLEW_ASSIGN_OR_RETURN(regions,
                        ListRegions(QemuPageProtection(), stack_addr_, brk_));
  NameInitialMappings(me, regions);
  StartState state;
  state.thread = me.tid;
  state.gpr = me.env.Gprs();
  state.rip = TraceeAddr(ip);
  state.rflags = me.env.rflags();
  state.brk = TraceeAddr(brk_);
  return WriteStart(StartPath(session_.folder), state, regions, memory_);
}

void Recording::NameInitialMappings(const Thread& me,
                                    const std::vector<GuestRegion>& regions) {
  tracer_->Comm(0, me.tid, clock_, true, program_);
  for (const ExecMapping& mapping : CodeOfFiles(regions)) {
    tracer_->Mmap(0, me.tid, clock_, mapping);
  }
}

void Recording::OpenInputs(Thread& thread) {
  auto file =
      RawFile::Create(RawInputsPath(session_.folder, thread.tid), limit_.get());
  if (!file) {
    GiveUp(file.error().message);
  }
  thread.inputs =
      std::make_unique<InputWriter>(thread.tid, std::move(*file), memory_);
}

Recording* g_recording = nullptr;

Recording::Recording(const Session& session, GuestMemory memory,
                     std::unique_ptr<SizeLimit> limit,
                     std::unique_ptr<Tracer> tracer, RawFile outcome,
                     RawFile raw_code, RawFile code_list)
    : session_(session),
      memory_(std::move(memory)),
      limit_(std::move(limit)),
      tracer_(std::move(tracer)),
      outcome_(std::move(outcome)),
      blocks_(HotPathCallbacks(), std::move(code_list)),
      raw_code_(std::move(raw_code)),
      versions_shown_(session.scheduler.cores, 0),
      scheduler_(session.scheduler),
      virtual_clock_(VirtualClock::HostsStart()) {}

Result<std::unique_ptr<Recording>> Recording::Create(const Session& session) {
  CLEW_ASSIGN_OR_RETURN(memory, GuestMemory::Open(QemuPageProtection()));
  auto limit = std::make_unique<SizeLimit>(session.size_limit_bytes);
  CLEW_ASSIGN_OR_RETURN(tracer, Tracer::Create(session, *limit));
  CLEW_ASSIGN_OR_RETURN(outcome, RawFile::Create(OutcomePath(session.folder)));
  CLEW_ASSIGN_OR_RETURN(
      raw_code, RawFile::Create(RawCodePath(session.folder), limit.get()));
  CLEW_ASSIGN_OR_RETURN(
      code_list, RawFile::Create(CodeListPath(session.folder), limit.get()));
  return std::unique_ptr<Recording>(new Recording(
      session, std::move(memory), std::move(limit), std::move(tracer),
      std::move(outcome), std::move(raw_code), std::move(code_list)));
}

}  // namespace clew::recorder
