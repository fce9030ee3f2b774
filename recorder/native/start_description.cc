#include "recorder/native/start_description.h"

#include <elf.h>
#include <sys/resource.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/user_registers.h"
#include "recorder/native/native_state.h"
#include "recorder/native/tracee/process_stat.h"
#include "recorder/qemu/initial_stack.h"
#include "recorder/qemu/start_writer.h"

namespace clew::recorder {
namespace {

// Source: linux arch/x86/include/asm/segment.h, __USER_CS.
constexpr uint64_t kCodeOf64Bits = 0x33;

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

std::array<uint64_t, 16> GprsOf(const user_regs_struct& registers) {
  std::array<uint64_t, 16> gpr;
  for (size_t i = 0; i < gpr.size(); ++i) {
    gpr[i] = registers.*kUserGprs[i];
  }
  return gpr;
}

StartThread DescribeRegisters(Tid thread, const user_regs_struct& registers) {
  return StartThread{.thread = thread,
                     .gpr = GprsOf(registers),
                     .rip = TraceeAddr(registers.rip),
                     .rflags = registers.eflags & ~kTrapFlag,
                     .fs_base = registers.fs_base,
                     .gs_base = registers.gs_base};
}

Result<StartThread> DescribeThread(const TracedProcess& process, Tid thread) {
  CLEW_ASSIGN_OR_RETURN(registers, process.Registers(thread));
  if (registers.cs != kCodeOf64Bits) {
    return Unsupported("the program's code is not of 64 bits");
  }
  return DescribeRegisters(thread, registers);
}

Result<StartState> DescribeProgram(const TracedProcess& process) {
  StartState start;
  CLEW_ASSIGN_OR_RETURN(first, DescribeThread(process, process.first_thread()));
  start.first = std::move(first);
  start.initial_stack = TraceeAddr(start.first.gpr[kRsp]);
  CLEW_ASSIGN_OR_RETURN(brk,
                        StatField(process.ProcText("stat"), kStatStartOfHeap));
  start.brk = TraceeAddr(brk);
  return start;
}

Result<StartState> DescribeAttached(const TracedProcess& process,
                                    const Attachment& attachment) {
  StartState start;
  CLEW_ASSIGN_OR_RETURN(stack,
                        StatField(process.ProcText("stat"), kStatStartOfStack));
  start.initial_stack = TraceeAddr(stack);
  start.brk = TraceeAddr(attachment.brk());
  for (const Attachment::Thread& attached : attachment.threads()) {
    CLEW_ASSIGN_OR_RETURN(thread, DescribeThread(process, attached.tid));
    CLEW_ASSIGN_OR_RETURN(extended, process.ExtendedState(attached.tid));
    thread.xsave = std::move(extended);
    thread.rseq_addr = attachment.RseqAddr(attached);
    if (attached.tid == process.first_thread()) {
      start.first = std::move(thread);
    } else {
      start.others.push_back(std::move(thread));
    }
  }
  return start;
}

Status HideVdso(const StartState& program, const GuestMemory& memory) {
  const InitialStack stack =
      ReadInitialStack(program.initial_stack.as_int(), memory);
  const uint64_t ignored = AT_IGNORE;
  const auto at = stack.AddrOf(AT_SYSINFO_EHDR);
  return !at || memory.Write(*at, &ignored, sizeof(ignored))
             ? Status()
             : Unsupported("the program's auxiliary vector cannot be written");
}

Status WriteDescription(const std::string& path, StartState& start,
                        int32_t process, std::vector<GuestRegion> regions,
                        const GuestMemory& memory) {
  start.mxcsr_mask = x86::HostMxcsrMask();
  start.cpu_features = start.cpu_features.With(x86::HostFeatures());
  GrowStack(process, regions);
  return WriteStart(path, start, regions, memory);
}

}  // namespace clew::recorder
