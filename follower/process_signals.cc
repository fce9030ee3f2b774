// Signals whose handlers a recorded process has entered: when they are
// delivered, and what the program then finds.
#include "follower/process.h"

namespace clew::follower {
namespace {

// The position of the first input that is not of the call that it is in.
uint64_t NextInUserMode(const ThreadState& state) {
  return state.input + (state.phase == ThreadPhase::kInCall ? 1 : 0);
}

}  // namespace

// How many signals, the next of its inputs once it is in user mode, lead from
// its instruction to `handler`: more than one where the first one's handler was
// interrupted before its first instruction. 0: none do.
Result<size_t> Process::SignalsUntil(size_t thread, TraceeAddr handler) const {
  const ThreadState& state = threads_[thread];
  TraceeAddr ip(state.registers.rip);
  for (size_t count = 0;; ++count) {
    CLEW_ASSIGN_OR_RETURN(record,
                          tape_->Input(thread, NextInUserMode(state) + count));
    const auto* const signal =
        record == nullptr ? nullptr : std::get_if<SignalInput>(record);
    if (signal == nullptr || signal->interrupted_ip != ip) {
      return 0;
    }
    ip = signal->handler_ip;
    if (ip == handler) {
      return count + 1;
    }
  }
}

// Whether the next so many are sent already.
Result<bool> Process::WereSent(size_t thread, size_t signals) const {
  SentSignals books = signals_;
  for (size_t i = 0; i < signals; ++i) {
    CLEW_ASSIGN_OR_RETURN(
        record, tape_->Input(thread, NextInUserMode(threads_[thread]) + i));
    const auto& signal = std::get<SignalInput>(*record);
    if (!books.MayHandle(tid(thread), signal.number, signal.sent_to)) {
      return false;
    }
    books.Handle(tid(thread), signal.number, signal.sent_to);
  }
  return true;
}

// Whether what the thread does next is to handle a signal that another thread
// has yet to send. `block` is its next one.
Result<bool> Process::AwaitsSignal(size_t thread,
                                   const StreamBlock& block) const {
  const ThreadState& state = threads_[thread];
  if (options_.force_path || state.block_done != 0 ||
      state.registers.rip == block.ip.as_int()) {
    return false;
  }
  CLEW_ASSIGN_OR_RETURN(signals, SignalsUntil(thread, block.ip));
  CLEW_ASSIGN_OR_RETURN(sent, WereSent(thread, signals));
  return !sent;
}

Result<Followed> Process::DeliverSignals(size_t thread,
                                         const StreamBlock& block) {
  ThreadState& state = threads_[thread];
  CLEW_ASSIGN_OR_RETURN(count, SignalsUntil(thread, block.ip));
  if (count == 0) {
    if (options_.force_path) {
      if (engine_ != nullptr) {
        engine_->OnDeparted(thread);
      }
      state.registers.rip = block.ip.as_int();
      return Followed::kAsRecorded;
    }
    return Contradict(
        Contradiction::Kind::kPath, thread,
        fmt::format("goes on at {:#x}, the recorded run went on at {:#x}",
                    state.registers.rip, block.ip));
  }
  for (size_t i = 0; i < count; ++i) {
    CLEW_RETURN_IF_ERROR(EnterHandler(thread));
  }
  return Followed::kAsRecorded;
}

// REQUIRES: the thread's next input is a signal.
Status Process::EnterHandler(size_t thread) {
  ThreadState& state = threads_[thread];
  CLEW_ASSIGN_OR_RETURN(record, tape_->Input(thread, state.input));
  const SignalInput entry = std::get<SignalInput>(*record);
  CLEW_RETURN_IF_ERROR(ApplyWrites(thread, entry.writes));
  if (!options_.force_path) {
    undo_.KeepOnce(&UndoEntry::signals, signals_);
    signals_.Handle(tid(thread), entry.number, entry.sent_to);
  }
  machine::Registers& registers = state.registers;
  registers.rip = entry.handler_ip.as_int();
  registers.gpr[kRsp] = entry.rsp;
  registers.gpr[kRdi] = entry.rdi;
  registers.gpr[kRsi] = entry.rsi;
  registers.gpr[kRdx] = entry.rdx;
  registers.gpr[kRax] = entry.rax;
  registers.rflags &= ~(machine::kFlagDirection | machine::kFlagTrap);
  ++state.input;
  return {};
}

void Process::EnterSentSignals(const SyscallInput& call) {
  if (!options_.force_path && SentSignals::Concerns(call.number)) {
    undo_.KeepOnce(&UndoEntry::signals, signals_);
    signals_.Enter(call.number, call.args);
  }
}

}  // namespace clew::follower
