#include "recorder/native/native_program.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "recorder/native/start_description.h"

namespace clew::recorder {
namespace {

using State = NativeThread::State;

}  // namespace

Status NativeProgram::Begin() {
  CLEW_ASSIGN_OR_RETURN(start, DescribeProgram(state_.process));
  stack_addr_ = start.initial_stack.as_int();
  brk_ = start.brk.as_int();
  CLEW_RETURN_IF_ERROR(HideVdso(start, state_.memory));
  AddThread(start.first.thread, start.first.rip, 0);
  return WriteStartState(start);
}

Status NativeProgram::Begin(const Attachment& attachment) {
  CLEW_ASSIGN_OR_RETURN(start, DescribeAttached(state_.process, attachment));
  stack_addr_ = start.initial_stack.as_int();
  brk_ = start.brk.as_int();
  CLEW_ASSIGN_OR_RETURN(regions, Regions());
  state_.files.Begin(regions);
  for (const Attachment::Thread& attached : attachment.threads()) {
    CLEW_ASSIGN_OR_RETURN(ip, state_.process.InsnPointer(attached.tid));
    AddThread(attached.tid, ip, attached.clear_tid_addr);
  }
  return WriteStartState(start);
}

// The first one has the program's name.
void NativeProgram::NameThreads() {
  for (const auto& thread : state_.threads) {
    if (thread->tid == state_.process.first_thread()) {
      continue;
    }
    std::string name = TracedProcess::ThreadText(thread->tid, "comm");
    name.resize(std::min(name.find('\n'), name.size()));
    state_.tracer->Comm(0, thread->tid, 0, false, name);
  }
}

void NativeProgram::AddThread(Tid thread, TraceeAddr ip,
                              uint64_t clear_tid_addr) {
  auto added = std::make_unique<NativeThread>();
  added->tid = thread;
  if (thread != state_.process.first_thread()) {
    added->parent = state_.process.first_thread();
  }
  added->slot = static_cast<uint32_t>(state_.threads.size());
  added->ip = ip.as_int();
  added->clear_tid_addr = clear_tid_addr;
  state_.threads.push_back(std::move(added));
}

Status NativeProgram::WriteStartState(StartState& start) {
  stack_ = ReadInitialStack(stack_addr_, state_.memory);
  CLEW_ASSIGN_OR_RETURN(regions, Regions());
  TellAnew(regions);
  for (const ExecMapping& mapping : CodeOfFiles(regions)) {
    state_.code.Map(mapping);
  }
  if (state_.inputs_are_tapped) {
    start.told_cpu = state_.shows_host_cpu ? HostCpu() : state_.shown_cpu;
  }
  return WriteDescription(StartPath(state_.config.folder), start,
                          state_.process.process(), std::move(regions),
                          state_.memory);
}

void NativeProgram::NameMappings(const std::vector<GuestRegion>& regions,
                                 uint64_t now) {
  const Tid main = state_.process.first_thread();
  state_.tracer->Comm(0, main, now, true, stack_.ProgramName());
  for (const ExecMapping& mapping : CodeOfFiles(regions)) {
    state_.tracer->Mmap(0, main, now, mapping);
  }
}

Result<std::vector<GuestRegion>> NativeProgram::RegionsNow(uint64_t brk) {
  brk_ = brk;
  return Regions();
}

void NativeProgram::TellAnew(const std::vector<GuestRegion>& regions) {
  NameMappings(regions, 0);
  NameThreads();
}

Status NativeProgram::NameWhatIsThere() {
  CLEW_RETURN_IF_ERROR(state_.tracer->BeginAnew());
  CLEW_ASSIGN_OR_RETURN(regions, Regions());
  NameMappings(regions, state_.now);
  const Tid main = state_.process.first_thread();
  for (const auto& thread : state_.threads) {
    if (thread->tid != main && thread->state != State::kGone) {
      state_.tracer->Fork(0, main, thread->tid, state_.now);
    }
  }
  return {};
}

Status NativeProgram::WriteCoreDump(const NativeEnd& end) {
  const Failure& failure = end.failure;
  DumpedProcess dump;
  dump.process = state_.process.process();
  dump.program = stack_.ProgramName();
  dump.arguments = stack_.CommandLine();
  dump.auxv = stack_.AuxvBytes();
  dump.signal = failure.signal;
  dump.code = end.code;
  dump.fault_addr = failure.addr.as_int();
  for (const auto& thread : state_.threads) {
    if (thread->state == State::kGone || thread->other_process != nullptr) {
      continue;
    }
    CLEW_ASSIGN_OR_RETURN(dumped, Dumped(*thread));
    const bool first = thread->tid == failure.thread;
    dump.threads.insert(first ? dump.threads.begin() : dump.threads.end(),
                        dumped);
  }
  CLEW_ASSIGN_OR_RETURN(regions, Regions());
  return WriteCore(CorePath(state_.config.folder), dump, regions,
                   state_.memory);
}

// The program's own.
Result<std::vector<GuestRegion>> NativeProgram::Regions() const {
  CLEW_ASSIGN_OR_RETURN(
      regions, ListRegionsOf(state_.process.process(), stack_addr_, brk_));
  for (const MemoryRange& hidden : state_.hidden) {
    std::erase_if(regions, [&hidden](const GuestRegion& region) {
      return region.addr - hidden.addr < hidden.size_bytes;
    });
  }
  return regions;
}

Result<DumpedThread> NativeProgram::Dumped(const NativeThread& thread) const {
  user_regs_struct registers = {};
  if (thread.in_vfork) {
    registers = thread.in_vfork->registers;
  } else {
    CLEW_ASSIGN_OR_RETURN(stopped, state_.process.Registers(thread.tid));
    registers = stopped;
  }
  if (thread.call && registers.rip == thread.call_ip) {
    // It has not been made yet, and will not return.
    registers.rip = thread.ip;
    registers.rcx = thread.ip;
    registers.r11 = registers.eflags & ~kTrapFlag;
  }
  return DumpedThread{.thread = thread.tid,
                      .gpr = GprsOf(registers),
                      .rip = registers.rip,
                      .rflags = registers.eflags & ~kTrapFlag,
                      .fs_base = registers.fs_base,
                      .gs_base = registers.gs_base};
}

}  // namespace clew::recorder
