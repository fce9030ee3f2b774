// The kernel's side of a recorded process: what system calls did, from the
// input log, and which of their recorded results are possible now.
#include <asm/prctl.h>
#include <asm/unistd_64.h>
#include <linux/rseq.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include "common/check.h"
#include "common/digest.h"
#include "common/linux/request_table.h"
#include "common/linux/syscall_result.h"
#include "common/linux/syscall_table.h"
#include "follower/kernel/call_check.h"
#include "follower/kernel/call_mappings.h"
#include "follower/kernel/call_observer.h"
#include "follower/kernel/call_writes.h"
#include "follower/kernel/machine_memory.h"
#include "follower/kernel/new_thread.h"
#include "follower/kernel/signal_frame.h"
#include "follower/process.h"
#include "follower/thread_cpu.h"

namespace clew::follower {
namespace {

// Of an arch_prctl.
void SetSegmentBase(const SyscallInput& call, machine::Registers& registers) {
  switch (RequestIn(call.args[0])) {
    case ARCH_SET_FS:
      registers.fs_base = call.args[1];
      break;
    case ARCH_SET_GS:
      registers.gs_base = call.args[1];
      break;
    default:
      break;
  }
}

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
  const uint64_t ip = threads_[thread].registers.rip;
  if (call_observer_ != nullptr) {
    call_observer_->OnCall(ip, insn_offset, *call);
  }
  if (observer_ != nullptr) {
    ObserveCall(*observer_, memory_, ip, insn_offset, *call);
  }
  if (call_observer_ != nullptr) {
    call_observer_->OnCallObserved(*call);
  }
  return {};
}

Result<Followed> Process::EnterSyscall(size_t thread) {
  ThreadState& state = threads_[thread];
  CLEW_ASSIGN_OR_RETURN(record, tape_->Input(thread, state.input));
  const auto* const call =
      record == nullptr ? nullptr : std::get_if<SyscallInput>(record);
  if (call == nullptr) {
    return Contradict(
        record == nullptr ? Contradiction::Kind::kNoInput
                          : Contradiction::Kind::kSyscall,
        thread,
        fmt::format("makes system call {}, none is recorded here",
                    SyscallName(SyscallNumber(state.registers.gpr[kRax]))));
  }
  if (!options_.force_path &&
      CheckCall(thread, *call) == Followed::kContradiction) {
    return Followed::kContradiction;
  }
  if (engine_ != nullptr) {
    engine_->OnSyscall(thread, *call);
  }
  const Wait wait =
      IsInKernelModel(state) ? kernel_.Enter(*call, memory_) : Wait();
  switch (call->number) {
    case __NR_exit:
    case __NR_exit_group:
      Exit(thread, *call);
      return Followed::kAsRecorded;
    case __NR_rt_sigreturn:
      if (call->result == kRestartSys) {
        break;  // a signal came before the kernel took it
      }
      ++state.input;
      if (!RestoreSignalFrame(
              memory_, machine::LayoutOf(state.registers, told_cpu_.get()),
              state.registers)) {
        return Unsupported("thread {}: the signal frame at {:#x} is not mapped",
                           tid(thread), state.registers.gpr[kRsp]);
      }
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
    state.wait = wait;
    return Followed::kAsRecorded;
  }
  const MemoryRange room = RoomAwaitedBy(*call);
  // A child process with memory of its own is not of this recording.
  const auto made = NewThreadOf(*call, MachineMemory(memory_));
  if (made) {
    CLEW_RETURN_IF_ERROR(CreateThread(thread, *made));
  }
  const bool waits_for_child = made && (made->flags & CLONE_VFORK) != 0 &&
                               tape_->IndexOf(made->tid) &&
                               !options_.force_path;
  if (room.size_bytes != 0 || waits_for_child) {
    state.phase = ThreadPhase::kInCall;
    state.wait.room = room;
    if (waits_for_child) {
      state.wait.child = tape_->IndexOf(made->tid);
    }
    return Followed::kAsRecorded;
  }
  return FinishCall(thread, *call);
}

MemoryRange Process::RoomAwaitedBy(const SyscallInput& call) const {
  if (options_.force_path || has_detached_ ||
      IsErrorResult(call.result.value_or(0))) {
    return {};
  }
  const MemoryRange room = RoomFoundBy(call);
  return IsFree(memory_, room) ? MemoryRange() : room;
}

// Arguments first: they say where the rest is.
Followed Process::CheckCall(size_t thread, const SyscallInput& call) {
  auto differs = OtherArguments(threads_[thread].registers, call);
  if (!differs) {
    differs = OtherReads(memory_, call);
  }
  return differs ? Contradict(Contradiction::Kind::kSyscall, thread,
                              *std::move(differs))
                 : CheckOutput(thread, call);
}

Followed Process::CheckOutput(size_t thread, const SyscallInput& call) {
  if (!call.output_digest) {
    return Followed::kAsRecorded;
  }
  const auto bytes = OutputOf(memory_, call);
  const bool same = bytes && Digest(*bytes) == *call.output_digest;
  if (!same) {
    ++outputs_differing_;
    if (options_.strict_output) {
      return Contradict(Contradiction::Kind::kOutput, thread,
                        fmt::format("{} outputs other bytes than recorded",
                                    SyscallName(call.number)));
    }
  }
  if (output_ && bytes) {
    output_(tid(thread), static_cast<int>(call.args[0]), *bytes);
  }
  return Followed::kAsRecorded;
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
  if (state.wait.refusal && !state.wait.refusal->was_seen) {
    --refusals_unseen_;
  }
  kernel_.EndWait(state.wait);
  state.wait = {};
  state.phase = ThreadPhase::kRunning;
  if (observer_ != nullptr && SyscallMayBlock(call.number) &&
      call.number != __NR_futex) {
    std::vector<MemoryWrite> room;
    ObserveWrites(*observer_, memory_, 0, WritesOf(call, memory_, room));
  }
  return FinishCall(thread, call);
}

// Applies result and effects; the thread is back in user mode afterwards.
Result<Followed> Process::FinishCall(size_t thread, const SyscallInput& call) {
  ThreadState& state = threads_[thread];
  const int64_t result = call.result.value_or(0);
  std::vector<MemoryWrite> room;
  std::span<const MemoryWrite> writes = call.writes;
  if (!IsErrorResult(result)) {
    has_detached_ = has_detached_ || (call.number == __NR_shmdt &&
                                      memory_.SharedBytesAt(call.args[0]) == 0);
    for (const MemoryRange& changed : ApplyMappings(call, memory_, brk_)) {
      TellWritten(thread, changed.addr, changed.size_bytes);
    }
    writes = WritesOf(call, memory_, room);
    if (call.number == __NR_arch_prctl) {
      SetSegmentBase(call, state.registers);
    }
    // A recorder that logs what instructions give makes no such call.
    if (call.number == __NR_rseq && told_cpu_ != nullptr) {
      const bool registers = (call.args[2] & RSEQ_FLAG_UNREGISTER) == 0;
      state.rseq_addr = registers ? call.args[0] : 0;
      state.rseq_is_new = registers;
    }
  }
  CLEW_RETURN_IF_ERROR(ApplyWrites(thread, writes));
  if (IsInKernelModel(state)) {
    kernel_.Leave(call);
  }
  state.registers.gpr[kRax] =
      result == kRestartSys ? call.number : static_cast<uint64_t>(result);
  state.registers.rip = IpAfterCall(result, state.registers.rip);
  ++state.input;
  if (engine_ != nullptr) {
    engine_->OnReturn(thread, call);
  }
  return Followed::kAsRecorded;
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
    TellWritten(thread, write.addr.as_int(), write.bytes.size());
  }
  return {};
}

void Process::TellWritten(size_t thread, uint64_t addr, uint64_t size_bytes) {
  if (engine_ == nullptr) {
    return;
  }
  engine_->OnKernelWrite(thread, addr, size_bytes);
  memory_.ForEachMirror(
      addr, size_bytes,
      [&](uint64_t at, uint64_t /*offset*/, uint64_t part_bytes) {
        engine_->OnKernelWrite(thread, at, part_bytes);
      });
}

// The kernel tells a thread which CPU it is on, where that may be another than
// before. Source: linux kernel/rseq.c, rseq_update_cpu_node_id.
Status Process::WriteRseq(size_t thread, uint32_t slice) {
  ThreadState& state = threads_[thread];
  state.rseq_is_new = false;
  const uint32_t core = tape_->slices()[slice].core.as_int();
  const std::array<uint32_t, 2> told = {core, core};  // cpu_id_start, cpu_id
  const auto bytes = std::as_bytes(std::span(told));
  const MemoryWrite write = {.addr = TraceeAddr(state.rseq_addr),
                             .bytes = {bytes.begin(), bytes.end()}};
  return ApplyWrites(thread, std::span(&write, 1));
}

Status Process::CreateThread(size_t parent, const NewThread& made) {
  const auto child = tape_->IndexOf(made.tid);
  if (!child) {
    return {};  // it never ran before the recording ended
  }
  ThreadState& state = threads_[*child];
  if (state.phase != ThreadPhase::kNotCreated) {
    return CorruptInput(
        "inputs.pb: thread {} creates thread {} before instruction {}, wanted "
        "one that does not run yet",
        tid(parent), made.tid, threads_[parent].retired);
  }
  BeforeChange(*child);
  state.registers = threads_[parent].registers;
  state.registers.gpr[kRax] = 0;
  if (made.stack_pointer != 0) {
    state.registers.gpr[kRsp] = made.stack_pointer;
  }
  if ((made.flags & CLONE_SETTLS) != 0) {
    state.registers.fs_base = made.tls;
  }
  state.phase = ThreadPhase::kRunning;
  state.is_child_process =
      threads_[parent].is_child_process || made.is_process();
  if (engine_ != nullptr) {
    engine_->OnThreadCreated(parent, *child);
  }
  return {};
}

void Process::Exit(size_t thread, const SyscallInput& call) {
  ThreadState& state = threads_[thread];
  for (const MemoryWrite& write : call.writes) {
    if (memory_.Poke(write.addr.as_int(), write.bytes)) {
      kernel_.WakeOnExit(write.addr.as_int());
      TellWritten(thread, write.addr.as_int(), write.bytes.size());
    }
  }
  ++state.input;
  state.phase = ThreadPhase::kGone;
}

}  // namespace clew::follower
