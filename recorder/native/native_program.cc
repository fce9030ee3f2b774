#include "recorder/native/native_program.h"

#include <elf.h>
#include <sys/resource.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "common/user_registers.h"
#include "recorder/native/process_stat.h"
#include "recorder/qemu/start_writer.h"

namespace clew::recorder {
namespace {

using State = NativeThread::State;

// Source: linux arch/x86/include/asm/segment.h, __USER_CS.
constexpr uint64_t kCodeOf64Bits = 0x33;

std::array<uint64_t, 16> GprsOf(const user_regs_struct& registers) {
  std::array<uint64_t, 16> gpr;
  for (size_t i = 0; i < gpr.size(); ++i) {
    gpr[i] = registers.*kUserGprs[i];
  }
  return gpr;
}

// The stack is as large as it was needed so far, and grows where it is touched:
// up to its limit, and not near another mapping. Source: linux mm/mmap.c,
// acct_stack_growth, and stack_guard_gap.
void GrowStack(int32_t process, std::vector<GuestRegion>& regions) {
  constexpr uint64_t kGuardBytes = 256 * kPageBytes;
  constexpr uint64_t kStackBytesMax = 256 << 20;  // of one without a limit
  const auto stack = std::ranges::find(regions, "[stack]", &GuestRegion::name);
  rlimit limit = {};
  if (stack == regions.end() ||
      prlimit(process, RLIMIT_STACK, nullptr, &limit) != 0) {
    return;
  }
  const uint64_t end = stack->addr + stack->size_bytes;
  const uint64_t size = std::max(
      stack->size_bytes, std::min<uint64_t>(limit.rlim_cur, kStackBytesMax));
  uint64_t lowest = end - std::min(size, end);
  if (stack != regions.begin()) {
    const GuestRegion& below = *std::prev(stack);
    lowest = std::max(lowest, below.addr + below.size_bytes + kGuardBytes);
  }
  lowest = (lowest + kPageBytes - 1) / kPageBytes * kPageBytes;
  if (lowest < stack->addr) {
    stack->addr = lowest;
    stack->size_bytes = end - lowest;
  }
}

}  // namespace

Status NativeProgram::Begin() {
  StartState start;
  CLEW_ASSIGN_OR_RETURN(first, Described(state_.process.first_thread()));
  start.first = std::move(first);
  stack_addr_ = start.first.gpr[kRsp];
  CLEW_RETURN_IF_ERROR(HideVdso());
  CLEW_ASSIGN_OR_RETURN(brk, StatField(state_.process, kStatStartOfHeap));
  brk_ = brk;
  AddThread(start.first, 0);
  return WriteStartState(start);
}

Status NativeProgram::Begin(const Attachment& attachment) {
  StartState start;
  CLEW_ASSIGN_OR_RETURN(stack, StatField(state_.process, kStatStartOfStack));
  stack_addr_ = stack;
  brk_ = attachment.brk();
  CLEW_ASSIGN_OR_RETURN(regions, Regions());
  state_.files.Begin(regions);
  for (const Attachment::Thread& attached : attachment.threads()) {
    CLEW_ASSIGN_OR_RETURN(thread, Described(attached.tid));
    CLEW_ASSIGN_OR_RETURN(extended, state_.process.ExtendedState(attached.tid));
    thread.xsave = std::move(extended);
    AddThread(thread, attached.clear_tid_addr);
    if (attached.tid == state_.process.first_thread()) {
      start.first = std::move(thread);
    } else {
      start.others.push_back(std::move(thread));
    }
  }
  return WriteStartState(start);
}

// The first one has the program's name.
void NativeProgram::NameThreads() {
  for (const auto& thread : state_.threads) {
    if (thread->tid == state_.process.first_thread()) {
      continue;
    }
    std::string name =
        state_.process.ProcText(fmt::format("task/{}/comm", thread->tid));
    name.resize(std::min(name.find('\n'), name.size()));
    state_.tracer->Comm(0, thread->tid, 0, false, name);
  }
}

void NativeProgram::AddThread(const StartThread& thread,
                              uint64_t clear_tid_addr) {
  auto added = std::make_unique<NativeThread>();
  added->tid = thread.thread;
  if (thread.thread != state_.process.first_thread()) {
    added->parent = state_.process.first_thread();
  }
  added->slot = static_cast<uint32_t>(state_.threads.size());
  added->ip = thread.rip.as_int();
  added->clear_tid_addr = clear_tid_addr;
  state_.threads.push_back(std::move(added));
}

Status NativeProgram::WriteStartState(StartState& start) {
  stack_ = ReadInitialStack(stack_addr_, state_.memory);
  CLEW_ASSIGN_OR_RETURN(regions, Regions());
  const Tid main = state_.process.first_thread();
  state_.tracer->Comm(0, main, 0, true, stack_.ProgramName());
  NameThreads();
  for (const ExecMapping& mapping : CodeOfFiles(regions)) {
    state_.tracer->Mmap(0, main, 0, mapping);
    state_.code.Map(mapping);
  }
  start.mxcsr_mask = x86::HostMxcsrMask();
  start.cpu_features = start.cpu_features.With(x86::HostFeatures());
  if (state_.inputs_are_tapped) {
    start.told_cpu = state_.shown_cpu;
  }
  start.brk = TraceeAddr(brk_);
  start.initial_stack = TraceeAddr(stack_addr_);
  GrowStack(state_.process.process(), regions);
  return WriteStart(StartPath(state_.config.folder), start, regions,
                    state_.memory);
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
    if (thread->state == State::kGone) {
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

Status NativeProgram::HideVdso() {
  const InitialStack stack = ReadInitialStack(stack_addr_, state_.memory);
  const uint64_t ignored = AT_IGNORE;
  const auto at = stack.AddrOf(AT_SYSINFO_EHDR);
  if (at && !state_.memory.Write(*at, &ignored, sizeof(ignored))) {
    return Unsupported("the program's auxiliary vector cannot be written");
  }
  return {};
}

Result<std::vector<GuestRegion>> NativeProgram::Regions() const {
  return ListRegionsOf(state_.process.process(), stack_addr_, brk_);
}

Result<StartThread> NativeProgram::Described(Tid thread) const {
  CLEW_ASSIGN_OR_RETURN(registers, state_.process.Registers(thread));
  if (registers.cs != kCodeOf64Bits) {
    return Unsupported("the program's code is not of 64 bits");
  }
  return StartThread{.thread = thread,
                     .gpr = GprsOf(registers),
                     .rip = TraceeAddr(registers.rip),
                     .rflags = registers.eflags & ~kTrapFlag,
                     .fs_base = registers.fs_base,
                     .gs_base = registers.gs_base};
}

Result<DumpedThread> NativeProgram::Dumped(const NativeThread& thread) const {
  CLEW_ASSIGN_OR_RETURN(registers, state_.process.Registers(thread.tid));
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
