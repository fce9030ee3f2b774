// The kernel's side of a recorded process: what system calls did, from the
// input log, and which of their recorded results are possible now.
#include <asm/prctl.h>
#include <asm/unistd_64.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "common/check.h"
#include "common/linux/argument_bits.h"
#include "common/linux/futex_command.h"
#include "common/linux/syscall_table.h"
#include "common/x86/page.h"
#include "follower/process.h"
#include "follower/thread_cpu.h"
#include "machine/fxsave.h"

namespace clew::follower {
namespace {

constexpr uint64_t kMapFailedFrom = static_cast<uint64_t>(-4095);

// Byte offsets in the frame that rt_sigreturn finds at rsp, a struct ucontext.
// Source: linux arch/x86/include/uapi/asm/sigcontext.h, struct sigcontext_64,
// and asm-generic/ucontext.h.
constexpr uint64_t kContextRegisters = 40;
constexpr std::array<Gpr, 16> kContextOrder = {
    kR8,  kR9,  kR10, kR11, kR12, kR13, kR14, kR15,
    kRdi, kRsi, kRbp, kRbx, kRdx, kRax, kRcx, kRsp};
constexpr size_t kContextRip = 16;
constexpr size_t kContextFlags = 17;
constexpr size_t kContextFpstate = 23;
constexpr size_t kContextWords = 24;

}  // namespace

// Before the SYSCALL counts as retired, so that it is named as the instruction
// that accesses.
Status Process::ObserveSyscall(size_t thread, uint64_t insn_offset) {
  CLEW_ASSIGN_OR_RETURN(record, tape_->Input(thread, threads_[thread].input));
  const auto* const call =
      record == nullptr ? nullptr : std::get_if<SyscallInput>(record);
  if (call == nullptr) {
    return {};
  }
  if (call->read_digest) {
    ObserveReads(threads_[thread].registers.rip, insn_offset, *call);
  }
  if (call->number == __NR_futex) {
    observer_->OnAccess({.ip = threads_[thread].registers.rip,
                         .insn_offset = insn_offset,
                         .addr = call->args[0],
                         .value = 0,
                         .size_bytes = sizeof(uint32_t),
                         .kind = AccessKind::kReadModifyWrite});
  } else if (!SyscallMayBlock(call->number)) {
    ObserveWrites(insn_offset, call->writes);
  }
  return {};
}

void Process::ObserveWrites(uint64_t insn_offset,
                            std::span<const MemoryWrite> writes) {
  for (const MemoryWrite& write : writes) {
    if (!write.bytes.empty()) {
      observer_->OnAccess(
          {.ip = 0,
           .insn_offset = insn_offset,
           .addr = write.addr.as_int(),
           .value = 0,
           .size_bytes = static_cast<uint32_t>(write.bytes.size()),
           .kind = AccessKind::kWrite});
    }
  }
}

Result<Followed> Process::EnterSyscall(size_t thread) {
  ThreadState& state = threads_[thread];
  CLEW_ASSIGN_OR_RETURN(record, tape_->Input(thread, state.input));
  const auto* const call =
      record == nullptr ? nullptr : std::get_if<SyscallInput>(record);
  if (call == nullptr) {
    return Contradict(Contradiction::Kind::kSyscall, thread,
                      fmt::format("makes system call {}, none is recorded here",
                                  SyscallName(state.registers.gpr[kRax])));
  }
  if (!options_.force_path &&
      CheckCall(thread, *call) == Followed::kContradiction) {
    return Followed::kContradiction;
  }
  if (engine_ != nullptr) {
    engine_->OnSyscall(thread, *call);
  }
  EnterChannels(thread, *call);
  EnterSentSignals(*call);
  switch (call->number) {
    case __NR_exit:
    case __NR_exit_group:
      Exit(thread, *call);
      return Followed::kAsRecorded;
    case __NR_rt_sigreturn:
      ++state.input;
      CLEW_RETURN_IF_ERROR(ReturnFromSignal(thread));
      return Followed::kAsRecorded;
    case __NR_futex:
      if (!options_.force_path) {
        return EnterFutex(thread, *call);
      }
      break;
    default:
      break;
  }
  if (SyscallMayBlock(call->number) || !call->result) {
    state.phase = ThreadPhase::kInCall;
    state.needs_wake = state.taking.channel != Channels::kNone;
    state.wait_addr =
        state.needs_wake ? Channels::WaitAddr(state.taking.channel) : 0;
    return Followed::kAsRecorded;
  }
  return FinishCall(thread, *call);
}

// Arguments first: they say where the rest is.
Followed Process::CheckCall(size_t thread, const SyscallInput& call) {
  Followed followed = CheckArguments(thread, call);
  if (followed == Followed::kAsRecorded) {
    followed = CheckReads(thread, call);
  }
  return followed == Followed::kAsRecorded ? CheckOutput(thread, call)
                                           : followed;
}

Followed Process::CheckArguments(size_t thread, const SyscallInput& call) {
  static constexpr std::array<Gpr, 6> kArguments = {kRdi, kRsi, kRdx,
                                                    kR10, kR8,  kR9};
  const auto& gpr = threads_[thread].registers.gpr;
  if (gpr[kRax] != call.number) {
    return Contradict(
        Contradiction::Kind::kSyscall, thread,
        fmt::format("makes system call {}, recorded is {}",
                    SyscallName(gpr[kRax]), SyscallName(call.number)));
  }
  const ArgumentBits bits = BitsOfArguments(call.number, call.args);
  for (size_t i = 0; i < bits.size(); ++i) {
    const uint64_t differing = gpr[kArguments[i]] ^ call.args[i];
    if (bits[i] != 0 && differing << (64 - bits[i]) != 0) {
      return Contradict(
          Contradiction::Kind::kSyscall, thread,
          fmt::format("argument {} of {} is {:#x}, recorded is {:#x}", i,
                      SyscallName(call.number), gpr[kArguments[i]],
                      call.args[i]));
    }
  }
  return Followed::kAsRecorded;
}

Result<Followed> Process::EnterFutex(size_t thread, const SyscallInput& call) {
  ThreadState& state = threads_[thread];
  const uint64_t addr = call.args[0];
  switch (FutexCommand(call.args[1])) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET: {
      uint32_t value = 0;
      const bool mapped =
          memory_.Peek(addr, std::as_writable_bytes(std::span(&value, 1)));
      const bool equal = mapped && value == static_cast<uint32_t>(call.args[2]);
      const bool refused = call.result == -EAGAIN;
      if (equal == refused) {
        return Contradict(
            Contradiction::Kind::kFutex, thread,
            fmt::format("futex wait at {:#x} for value {:#x} {}, the word "
                        "is {:#x}",
                        addr, call.args[2],
                        refused ? "was refused" : "was accepted", value));
      }
      if (refused) {
        return FinishCall(thread, call);
      }
      state.phase = ThreadPhase::kInCall;
      state.wait_addr = addr;
      state.needs_wake = !call.result || *call.result == 0;
      undo_.KeepOnce(&UndoEntry::futexes, futexes_);
      futexes_.Wait(addr, state.needs_wake);
      return Followed::kAsRecorded;
    }
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET: {
      if (call.result && *call.result >= 0) {
        undo_.KeepOnce(&UndoEntry::futexes, futexes_);
        const auto woken = static_cast<uint64_t>(*call.result);
        if (!futexes_.Wake(addr, call.args[2], woken)) {
          return Contradict(
              Contradiction::Kind::kFutex, thread,
              fmt::format("futex wake at {:#x} woke {} of at most {}, which "
                          "is not possible now",
                          addr, woken, call.args[2]));
        }
      }
      return FinishCall(thread, call);
    }
    default:
      return Unsupported("thread {}: futex command {} at {:#x}", tid(thread),
                         FutexCommand(call.args[1]), state.registers.rip);
  }
}

Result<Followed> Process::ReturnFromCall(size_t thread) {
  ThreadState& state = threads_[thread];
  CLEW_ASSIGN_OR_RETURN(record, tape_->Input(thread, state.input));
  const SyscallInput call = std::get<SyscallInput>(*record);
  if (!call.result) {
    return Contradict(Contradiction::Kind::kSyscall, thread,
                      fmt::format("{} never returned, yet the thread goes on",
                                  SyscallName(call.number)));
  }
  if (state.taking.channel != Channels::kNone) {
    undo_.KeepOnce(&UndoEntry::channels, channels_);
    channels_.Take(state.taking);
    state.taking = {};
  } else if (state.wait_addr != 0) {
    undo_.KeepOnce(&UndoEntry::futexes, futexes_);
    futexes_.Return(state.wait_addr, state.needs_wake);
  }
  state.wait_addr = 0;
  state.needs_wake = false;
  state.phase = ThreadPhase::kRunning;
  if (observer_ != nullptr && call.number != __NR_futex) {
    ObserveWrites(0, call.writes);
  }
  return FinishCall(thread, call);
}

// Applies result and effects; the thread is back in user mode afterwards.
Result<Followed> Process::FinishCall(size_t thread, const SyscallInput& call) {
  ThreadState& state = threads_[thread];
  const uint64_t result = static_cast<uint64_t>(call.result.value_or(0));
  if (result < kMapFailedFrom) {
    ApplyMappings(call);
    if (call.number == __NR_arch_prctl && call.args[0] == ARCH_SET_FS) {
      state.registers.fs_base = call.args[1];
    } else if (call.number == __NR_arch_prctl && call.args[0] == ARCH_SET_GS) {
      state.registers.gs_base = call.args[1];
    }
    // A child process is not of this recording.
    if (call.number == __NR_clone && (call.args[0] & CLONE_THREAD) != 0) {
      const Tid child(static_cast<int32_t>(result));
      CLEW_RETURN_IF_ERROR(CreateThread(thread, child, call));
    }
  }
  CLEW_RETURN_IF_ERROR(ApplyWrites(thread, call.writes));
  ReturnToChannels(call);
  state.registers.gpr[kRax] = result;
  ++state.input;
  if (engine_ != nullptr) {
    engine_->OnReturn(thread, call);
  }
  return Followed::kAsRecorded;
}

void Process::ApplyMappings(const SyscallInput& call) {
  const uint64_t result = static_cast<uint64_t>(call.result.value_or(0));
  const auto& args = call.args;
  switch (call.number) {
    case __NR_mmap:
      memory_.Map(result, args[1], static_cast<uint32_t>(args[2] & 7));
      break;
    case __NR_munmap:
      memory_.Unmap(args[0], args[1]);
      break;
    // All of the segment is written. shmdt does not say how much it takes away,
    // and takes nothing here: such recordings are never said to contradict.
    case __NR_shmat:
      if (!call.writes.empty()) {
        memory_.Map(
            result, call.writes[0].bytes.size(),
            (args[2] & SHM_RDONLY) != 0 ? kProtRead : kProtRead | kProtWrite);
      }
      break;
    case __NR_mprotect:
      memory_.Protect(args[0], args[1], static_cast<uint32_t>(args[2] & 7));
      break;
    case __NR_madvise:
      if (static_cast<uint32_t>(args[2]) == MADV_DONTNEED) {
        Discard(args[0], RoundUpToPage(args[1]));
      }
      break;
    case __NR_mremap:
      if (result != args[0]) {
        memory_.Move(args[0], result, std::min(args[1], args[2]));
      }
      if (args[2] > args[1]) {
        const uint64_t grown = result + RoundUpToPage(args[1]);
        const uint32_t prot =
            memory_.ProtectionAt(result).value_or(kProtRead | kProtWrite);
        memory_.Map(grown, RoundUpToPage(args[2]) - RoundUpToPage(args[1]),
                    prot);
      } else if (RoundUpToPage(args[2]) < RoundUpToPage(args[1])) {
        memory_.Unmap(
            (result == args[0] ? result : args[0]) + RoundUpToPage(args[2]),
            RoundUpToPage(args[1]) - RoundUpToPage(args[2]));
      }
      break;
    case __NR_brk:
      if (RoundUpToPage(result) > RoundUpToPage(brk_)) {
        memory_.Map(RoundUpToPage(brk_),
                    RoundUpToPage(result) - RoundUpToPage(brk_),
                    kProtRead | kProtWrite);
      } else if (RoundUpToPage(result) < RoundUpToPage(brk_)) {
        memory_.Unmap(RoundUpToPage(result),
                      RoundUpToPage(brk_) - RoundUpToPage(result));
      }
      brk_ = result;
      break;
    default:
      break;
  }
}

// Memory that has no file behind it reads zero afterwards. Of what has one, the
// recorder wrote down the contents.
void Process::Discard(uint64_t addr, uint64_t size_bytes) {
  for (uint64_t page = addr; page < addr + size_bytes; page += kPageBytes) {
    if (const auto prot = memory_.ProtectionAt(page)) {
      memory_.Map(page, kPageBytes, *prot);
    }
  }
}

Status Process::ApplyWrites(size_t thread,
                            std::span<const MemoryWrite> writes) {
  for (const MemoryWrite& write : writes) {
    if (!memory_.Poke(write.addr.as_int(), write.bytes)) {
      return CorruptInput(
          "inputs.pb: thread {} before instruction {}: a write of {} bytes at "
          "{:#x}, which is not mapped",
          tid(thread), threads_[thread].retired, write.bytes.size(),
          write.addr);
    }
    if (engine_ != nullptr) {
      engine_->OnKernelWrite(thread, write.addr.as_int(), write.bytes.size());
    }
  }
  return {};
}

Status Process::CreateThread(size_t parent, Tid child_tid,
                             const SyscallInput& call) {
  const auto child = tape_->IndexOf(child_tid);
  if (!child) {
    return {};  // it never ran before the recording ended
  }
  ThreadState& state = threads_[*child];
  if (state.phase != ThreadPhase::kNotCreated) {
    return CorruptInput("inputs.pb: thread {} is created twice", child_tid);
  }
  SaveForUndo(*child);
  state.registers = threads_[parent].registers;
  state.registers.gpr[kRax] = 0;
  if (call.args[1] != 0) {
    state.registers.gpr[kRsp] = call.args[1];
  }
  if ((call.args[0] & CLONE_SETTLS) != 0) {
    state.registers.fs_base = call.args[4];
  }
  state.phase = ThreadPhase::kRunning;
  if (engine_ != nullptr) {
    engine_->OnThreadCreated(parent, *child);
  }
  return {};
}

void Process::Exit(size_t thread, const SyscallInput& call) {
  ThreadState& state = threads_[thread];
  undo_.KeepOnce(&UndoEntry::futexes, futexes_);
  for (const MemoryWrite& write : call.writes) {
    if (memory_.Poke(write.addr.as_int(), write.bytes)) {
      futexes_.WakeOnExit(write.addr.as_int());
      if (engine_ != nullptr) {
        engine_->OnKernelWrite(thread, write.addr.as_int(), write.bytes.size());
      }
    }
  }
  ++state.input;
  state.phase = ThreadPhase::kGone;
}

Status Process::ReturnFromSignal(size_t thread) {
  machine::Registers& registers = threads_[thread].registers;
  std::array<uint64_t, kContextWords> context = {};
  if (!memory_.Peek(registers.gpr[kRsp] + kContextRegisters,
                    std::as_writable_bytes(std::span(context)))) {
    return Unsupported("thread {}: the signal frame at {:#x} is not mapped",
                       tid(thread), registers.gpr[kRsp]);
  }
  for (size_t i = 0; i < kContextOrder.size(); ++i) {
    registers.gpr[kContextOrder[i]] = context[i];
  }
  registers.rip = context[kContextRip];
  constexpr uint64_t kRestored =
      machine::kFlagsArithmetic | machine::kFlagDirection | machine::kFlagId;
  registers.rflags =
      (registers.rflags & ~kRestored) | (context[kContextFlags] & kRestored);
  const uint64_t fpstate = context[kContextFpstate];
  machine::FxsaveArea area;
  if (fpstate != 0 &&
      memory_.Peek(fpstate, std::as_writable_bytes(std::span(&area, 1)))) {
    registers.mxcsr = area.pointers.mxcsr;
    registers.xmm = area.xmm;
    machine::RestoreX87(area, registers.x87);
  }
  return {};
}

}  // namespace clew::follower
