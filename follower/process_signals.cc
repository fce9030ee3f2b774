// Signals whose handlers a recorded process has entered: when they are
// delivered, and what the program then finds.
#include "common/linux/syscall_result.h"
#include "follower/process.h"
#include "machine/xsave.h"

namespace clew::follower {
namespace {

// Where a thread is once the call that it may be in has returned.
struct UserMode {
  uint64_t input;  // the next of its inputs
  TraceeAddr ip;
};

Result<UserMode> NextInUserMode(Tape& tape, size_t thread,
                                const ThreadState& state) {
  const uint64_t ip = state.registers.rip;
  if (state.phase != ThreadPhase::kInCall) {
    return UserMode{.input = state.input, .ip = TraceeAddr(ip)};
  }
  CLEW_ASSIGN_OR_RETURN(record, tape.Input(thread, state.input));
  const int64_t result = std::get<SyscallInput>(*record).result.value_or(0);
  return UserMode{.input = state.input + 1,
                  .ip = TraceeAddr(IpAfterCall(result, ip))};
}

// The signals, the next of a thread's inputs once it is in user mode, that lead
// from its instruction to `handler`: more than one where the first one's
// handler was interrupted before its first instruction. Empty: none do.
Result<std::vector<SentSignals::Signal>> SignalsUntil(Tape& tape, size_t thread,
                                                      const ThreadState& state,
                                                      TraceeAddr handler) {
  std::vector<SentSignals::Signal> signals;
  CLEW_ASSIGN_OR_RETURN(next, NextInUserMode(tape, thread, state));
  for (TraceeAddr ip = next.ip; signals.empty() || ip != handler;) {
    CLEW_ASSIGN_OR_RETURN(record,
                          tape.Input(thread, next.input + signals.size()));
    const auto* const signal =
        record == nullptr ? nullptr : std::get_if<SignalInput>(record);
    if (signal == nullptr || signal->interrupted_ip != ip) {
      return std::vector<SentSignals::Signal>();
    }
    signals.push_back({.number = signal->number, .sent_to = signal->sent_to});
    ip = signal->handler_ip;
  }
  return signals;
}

}  // namespace

// Whether what the thread does next is to handle a signal that another thread
// has yet to send. `block` is its next one.
Result<bool> Process::AwaitsSignal(size_t thread,
                                   const StreamBlock& block) const {
  const ThreadState& state = threads_[thread];
  if (options_.force_path || state.block_done != 0 ||
      state.registers.rip == block.ip.as_int()) {
    return false;
  }
  CLEW_ASSIGN_OR_RETURN(signals, SignalsUntil(*tape_, thread, state, block.ip));
  return !kernel_.MayHandle(tid(thread), signals);
}

Result<Followed> Process::DeliverSignals(size_t thread,
                                         const StreamBlock& block) {
  ThreadState& state = threads_[thread];
  CLEW_ASSIGN_OR_RETURN(signals, SignalsUntil(*tape_, thread, state, block.ip));
  if (signals.empty()) {
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
  for (size_t i = 0; i < signals.size(); ++i) {
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
    kernel_.Handle(tid(thread),
                   {.number = entry.number, .sent_to = entry.sent_to});
  }
  machine::Registers& registers = state.registers;
  registers.rip = entry.handler_ip.as_int();
  registers.gpr[kRsp] = entry.rsp;
  registers.gpr[kRdi] = entry.rdi;
  registers.gpr[kRsi] = entry.rsi;
  registers.gpr[kRdx] = entry.rdx;
  registers.gpr[kRax] = entry.rax;
  registers.rflags &= ~(machine::kFlagDirection | machine::kFlagTrap);
  if (!registers.is_of_qemu()) {
    // Once the state is in the frame. Source: linux
    // arch/x86/kernel/fpu/core.c, fpu__clear_user_states.
    machine::InitialiseExtendedState(registers);
  }
  ++state.input;
  return {};
}

}  // namespace clew::follower
