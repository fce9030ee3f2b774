#include "recorder/tracer/free/free_thread.h"

#include <asm/unistd_64.h>
#include <linux/prctl.h>
#include <sched.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "common/linux/deviations.h"
#include "common/linux/request_table.h"
#include "common/linux/syscall_result.h"
#include "common/linux/syscall_table.h"
#include "recorder/tracer/free/leg_walk.h"

namespace clew::tracer {
namespace {

using recorder::EnableCause;
using recorder::RanStretch;
using State = recorder::NativeThread::State;
using x86::BranchClass;

const char* CauseOf(Untold untold) {
  switch (untold) {
    case Untold::kNothing:
      break;
    case Untold::kNotInTable:
      return "the table does not say what this call does";
    case Untold::kFault:
      return "memory of the program could not be read";
    case Untold::kTooLong:
      return "more bytes in one call than are recorded";
    case Untold::kSharedFile:
      break;
  }
  return "the tracer does not say why";
}

std::span<const std::byte> ToldBytes(const Batch& batch) {
  return std::as_bytes(std::span(batch.records))
      .first(std::min(batch.code_bytes, kBatchBytes));
}

SignalInput InputOf(const SignalItem& item) {
  SignalInput input;
  input.number = static_cast<int32_t>(item.signal.number);
  input.interrupted_ip = TraceeAddr(item.signal.interrupted_ip);
  input.handler_ip = TraceeAddr(item.signal.handler_ip);
  input.rsp = item.signal.rsp;
  input.rdi = item.signal.rdi;
  input.rsi = item.signal.rsi;
  input.rdx = item.signal.rdx;
  input.rax = item.signal.rax;
  input.writes = item.writes;
  return input;
}

InsnInput InputOf(const ToldInsn& insn) {
  return {.ip = TraceeAddr(insn.ip),
          .rax = insn.rax,
          .rbx = insn.rbx,
          .rcx = insn.rcx,
          .rdx = insn.rdx,
          .rflags = insn.rflags};
}

}  // namespace

void FreeThread::Begin(uint64_t tsc, Tid parent) {
  tsc_ = tsc;
  if (parent != Tid(0)) {
    native_.parent = parent;
    state_.tracer->Fork(native_.core, parent, native_.tid, tsc);
  }
  native_.state = State::kOnCore;
  native_.enable_cause = EnableCause::kSwitchIn;
  state_.tracer->SwitchIn(native_.core, native_.tid, tsc);
}

Status FreeThread::Take(const Batch& batch) {
  if (batch.end == BatchEnd::kTold) {
    return TakeTold(batch);
  }
  TellTime();
  legs_.FollowTables();
  CLEW_RETURN_IF_ERROR(TakeRecords(batch));
  CLEW_RETURN_IF_ERROR(TakeEnd(batch));
  tsc_ = std::max(tsc_, batch.tsc);  // another core's clock may be behind
  return {};
}

Status FreeThread::TakeRecords(const Batch& batch) {
  const auto follow = [this](const recorder::CodeStretch& stretch) {
    return Follow(stretch);
  };
  auto records = std::span(batch.records)
                     .first(std::min(batch.record_count, kBatchRecords));
  reader_.SetVersion(batch.version);
  while (!records.empty()) {
    records = records.subspan(TakeKnown(records));
    if (!records.empty()) {
      CLEW_RETURN_IF_ERROR(
          reader_.Read(records.first(1), batch.version, follow));
      records = records.subspan(1);
    }
  }
  return reader_.ReadEnd(batch, follow);
}

size_t FreeThread::TakeKnown(std::span<const LogRecord> records) {
  if (!reader_.place().has_begun) {
    return 0;
  }
  const uint64_t addr = reader_.place().addr;
  RetireFollowed(addr);
  EnterUserMode(addr);
  LegWalk walk(legs_, reader_, encoder(), tsc_, version_);
  size_t taken = 0;
  while (taken != records.size() && walk.Take(records[taken])) {
    ++taken;
  }
  ip_ = walk.place().addr;
  reader_.GoOnAt(walk.place());
  state_.insns = state_.insns.value_or(0) + walk.insns();
  return taken;
}

Status FreeThread::TakeEnd(const Batch& batch) {
  switch (batch.end) {
    case BatchEnd::kInterrupted:
      LeaveUserMode(batch.addr);
      return {};
    case BatchEnd::kCalled:
      RetireFollowed(batch.addr + kSyscallBytes);
      return native_.in_kernel
                 ? Status()
                 : CorruptInput(
                       "thread {} logs a system call at {:#x}, where "
                       "it made none",
                       native_.tid, batch.addr);
    case BatchEnd::kChanged:
      RetireFollowed(batch.addr);
      return {};
    default:
      RetireFollowed(reader_.place().addr);
      return {};
  }
}

Status FreeThread::TakeTold(const Batch& batch) {
  CLEW_RETURN_IF_ERROR(told_.Take(ToldBytes(batch)));
  for (const ToldItem& item : told_.Items()) {
    if (const auto* const call = std::get_if<CallItem>(&item)) {
      CLEW_RETURN_IF_ERROR(TakeCall(*call));
    } else if (const auto* const signal = std::get_if<SignalItem>(&item)) {
      native_.AddInput(InputOf(*signal));
    } else if (const auto* const insn = std::get_if<ToldInsn>(&item)) {
      native_.AddInput(InputOf(*insn));
    }
  }
  return {};
}

Status FreeThread::TakeCall(const CallItem& item) {
  const ToldCall& told = item.call;
  const auto result = static_cast<int64_t>(told.result);
  if (told.untold == Untold::kSharedFile) {
    state_.NoteUnlogged(recorder::PhraseOfSharedFile(item.path));
  } else if (told.untold != Untold::kNothing) {
    ++state_.inputs_unknown;
    native_.AddInput(UnknownInput{
        .count = 1, .cause = CauseOf(told.untold), .call_number = told.number});
  }
  if (told.untold == Untold::kNothing || told.untold == Untold::kSharedFile) {
    SyscallInput input;
    input.number = told.number;
    input.args = told.args;
    if (told.has_returned != 0) {
      input.result = result;
    }
    input.writes = item.writes;
    input.shared_memory = told.shared_memory;
    if (told.written_offset != kNotWritten) {
      input.written_offset = told.written_offset;
    }
    if (told.has_output != 0) {
      input.output_digest = told.output_digest;
      input.output_bytes = told.output_bytes;
    }
    if (state_.config.encoder.tsc) {
      // One that was stopped in it enters the kernel anew.
      input.entered_tsc = TscTicks(std::max(told.entered_tsc, begun_tsc_));
      input.left_tsc = TscTicks(told.has_returned != 0 ? told.left_tsc : 0);
    }
    native_.AddInput(input);
  }
  state_.has_reported |= told.is_report != 0;
  if (told.has_returned != 0) {
    tsc_ = std::max(tsc_, told.left_tsc);
  }
  if (const auto deviation = DeviationOfGsBase(told.number, told.args)) {
    CLEW_RETURN_IF_ERROR(state_.NoteDeviation(*deviation));
  }
  const SyscallRow* const row = FindSyscall(told.number);
  if (row != nullptr && told.has_returned != 0 && result >= 0) {
    recorder::SyscallCall call;
    call.row = row;
    call.number = told.number;
    call.args = told.args;
    FollowUp(call, result, item.path);
  }
  return {};
}

void FreeThread::FollowUp(const recorder::SyscallCall& call, int64_t result,
                          const std::string& path) {
  state_.code.Release(call, static_cast<uint64_t>(result));
  state_.uses_timers |= recorder::StartsTimer(call);
  if (state_.has_rseq && recorder::RegistersRseq(call)) {
    state_.NoteRseq(native_, call);
  }
  if (const auto file = recorder::CodeFileOf(call, result, path)) {
    const recorder::ExecMapping mapping =
        recorder::CodeMappedBy(call, result, *file);
    state_.tracer->Mmap(native_.core, native_.tid, tsc_, mapping);
    state_.code.Map(mapping);
  } else if (call.number == __NR_prctl &&
             RequestIn(call.args[0]) == PR_SET_NAME) {
    std::string name = TracedProcess::ThreadText(native_.tid, "comm");
    name.resize(std::min(name.find('\n'), name.size()));
    state_.tracer->Comm(native_.core, native_.tid, tsc_, false, name);
  }
}

Status FreeThread::Follow(const recorder::CodeStretch& stretch) {
  RetireFollowed(stretch.start);
  CLEW_ASSIGN_OR_RETURN(ran, code_.Find(stretch, tsc_));
  if (stretch.code.empty()) {
    return {};
  }
  if (ran->version > version_) {  // the time is told before it runs first
    version_ = ran->version;
    LeaveUserMode(stretch.start);
    if (native_.enable_cause == EnableCause::kKernelReturn) {
      native_.enable_cause = EnableCause::kTimed;
    }
  }
  EnterUserMode(stretch.start);
  const auto [insns, last] =
      EncodeStretch(stretch, *ran, encoder(), [](const RanStretch::Branch&) {});
  state_.insns = state_.insns.value_or(0) + insns;
  followed_ = last;
  return {};
}

void FreeThread::RetireFollowed(uint64_t next_ip) {
  const auto insn = std::exchange(followed_, std::nullopt);
  if (!insn) {
    return;
  }
  ip_ = next_ip;
  encoder().Branch(insn->branch_class, insn->fall_through, TraceeAddr(next_ip));
  if (insn->branch_class == BranchClass::kFar) {
    RetireFar(next_ip);
  }
}

void FreeThread::EnterUserMode(uint64_t ip) {
  if (native_.in_kernel) {
    encoder().Enable(TraceeAddr(ip), native_.enable_cause);
    native_.in_kernel = false;
    native_.enable_cause = EnableCause::kKernelReturn;
  }
}

// An interrupt comes before the instruction there.
void FreeThread::LeaveUserMode(uint64_t next_ip) {
  RetireFollowed(next_ip);
  if (!native_.in_kernel) {
    encoder().Interrupt(TraceeAddr(next_ip));
    native_.in_kernel = true;
    native_.enable_cause = EnableCause::kKernelReturn;
  }
}

// What the kernel does at its end comes behind its last call, and is known to
// be done then: so may the call be as late.
Status FreeThread::End(uint64_t tsc) {
  tsc_ = std::max(tsc_, tsc);
  StopAt(ip_);
  if (const auto call = std::exchange(native_.call, std::nullopt)) {
    native_.AddInput(recorder::InputOf(*call), std::vector<MemoryRange>());
  }
  state_.tracer->Exit(native_.core, native_.tid, native_.parent, tsc_);
  state_.tracer->SwitchOut(native_.core, native_.tid, tsc_, false);
  native_.state = State::kGone;
  return native_.CloseInputs();
}

// The kernel takes the thread back to its SYSCALL, without an effect.
void FreeThread::StopInCall(const recorder::SyscallCall& call, uint64_t tsc) {
  SyscallInput input = recorder::InputOf(call);
  input.result = kRestartSys;
  input.entered_tsc = TscTicks(tsc_);
  NoteInCall(tsc);
  input.left_tsc = TscTicks(tsc_);
  native_.AddInput(input);
  is_to_call_ = true;
  StopAt(ip_ - kSyscallBytes);
}

void FreeThread::BeginAnew(uint64_t tsc) {
  tsc_ = std::max(tsc_, tsc);
  begun_tsc_ = tsc_;
  told_tsc_ = 0;
  TellTime();
  if (std::exchange(is_to_call_, false)) {
    EnterUserMode(ip_);
    RetireFar(ip_ + kSyscallBytes);
    state_.insns = state_.insns.value_or(0) + 1;
  }
}

// SYSCALL, INT3 and their like.
void FreeThread::RetireFar(uint64_t next_ip) {
  ip_ = next_ip;
  encoder().FarTransfer();
  native_.in_kernel = true;
  native_.enable_cause = EnableCause::kKernelReturn;
}

void FreeThread::StopAt(uint64_t ip) {
  LeaveUserMode(ip);
  ip_ = ip;
  native_.ip = ip;
  TellTime();
}

// What was encoded ran before, and what will be, behind it.
void FreeThread::TellTime() {
  if (told_tsc_ != tsc_) {
    told_tsc_ = tsc_;
    encoder().AdvanceTime(TscTicks(tsc_));
    encoder().Sync(TraceeAddr(ip_));
  }
}

}  // namespace clew::tracer
