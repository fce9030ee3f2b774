#include "follower/failure_check.h"

#include <asm/unistd_64.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "common/x86/page.h"

namespace clew::follower {
namespace {

// The signal that Linux makes of a fault; 0 for none. It is the same fault only
// if it is the same signal. Source: linux arch/x86/kernel/traps.c, mm/fault.c.
int32_t SignalOf(machine::FaultKind kind) {
  switch (kind) {
    case machine::FaultKind::kNone:
      return 0;
    case machine::FaultKind::kUnmapped:
    case machine::FaultKind::kProtection:
    case machine::FaultKind::kGeneral:
      return SIGSEGV;
    case machine::FaultKind::kDivide:
      return SIGFPE;
    case machine::FaultKind::kIllegal:
      return SIGILL;
    case machine::FaultKind::kBreakpoint:
      return SIGTRAP;
  }
  return 0;
}

// Page faults alone say which access it was.
bool HasAddress(machine::FaultKind kind) {
  return kind == machine::FaultKind::kUnmapped ||
         kind == machine::FaultKind::kProtection;
}

// Signals that an instruction brings about. Any other one was sent.
bool IsOfInstruction(int32_t signal) {
  constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
  return std::ranges::find(kSignals, signal) != kSignals.end();
}

// Whether an instruction accesses a page; any page for address 0, which is that
// of a SIGBUS where the recorder does not know it (QEMU's user mode).
class PageWatcher final : public machine::AccessObserver {
 public:
  explicit PageWatcher(uint64_t addr)
      : any_(addr == 0), page_(addr / kPageBytes) {}
  bool OnAccess(const machine::ObservedAccess& access) override {
    const uint64_t last = access.addr + access.size_bytes - 1;
    touched_ =
        touched_ || any_ ||
        (access.addr / kPageBytes <= page_ && page_ <= last / kPageBytes);
    return true;
  }
  bool touched() const { return touched_; }

 private:
  bool any_;
  uint64_t page_;
  bool touched_ = false;
};

// The thread's last recorded act was to send itself the failing signal (abort,
// raise), and it is where that call returns.
Result<bool> SentSignal(const Process& process, size_t thread,
                        const Failure& failure) {
  const ThreadState& state = process.thread(thread);
  if (state.input == 0 || state.registers.rip != failure.ip.as_int()) {
    return false;
  }
  CLEW_ASSIGN_OR_RETURN(record, process.tape().Input(thread, state.input - 1));
  const auto* const call = std::get_if<SyscallInput>(record);
  if (call == nullptr) {
    return false;
  }
  const auto signal = static_cast<uint64_t>(failure.signal);
  switch (call->number) {
    case __NR_tgkill:
      return call->args[2] == signal;
    case __NR_kill:
    case __NR_tkill:
      return call->args[1] == signal;
    default:
      return false;
  }
}

// A file's end lies before the page that the mapping has there (SIGBUS): of the
// machine's memory it is a page like others.
bool TouchesPage(const Process& process, size_t thread, uint64_t addr) {
  Process probe = process;
  PageWatcher watcher(addr);
  probe.set_engine(nullptr);
  probe.set_observer(&watcher);
  (void)probe.ExecuteUnrecorded(thread);  // what it touched says enough
  return watcher.touched();
}

// The machine ends with `fault` instead.
Contradiction Otherwise(const Process& process, size_t thread,
                        const Failure& failure, const machine::Fault& fault) {
  const ThreadState& state = process.thread(thread);
  const std::string machine =
      fault.kind == machine::FaultKind::kNone
          ? "does not fault"
          : fmt::format("faults (signal {}, access to {:#x})",
                        SignalOf(fault.kind), fault.addr);
  return {.kind = Contradiction::Kind::kFault,
          .thread = thread,
          .tid = process.tid(thread),
          .insn_index = state.retired,
          .ip = state.registers.rip,
          .inputs = state.input,
          .text = fmt::format(
              "the recorded run failed at {:#x} (signal {}, access to {:#x}), "
              "the machine {} at {:#x}",
              failure.ip, failure.signal, failure.addr, machine,
              state.registers.rip)};
}

}  // namespace

bool EndsInBreakpoint(const Process& process, size_t thread) {
  constexpr std::byte kInt3{0xcc};
  std::array<std::byte, 1> last = {};
  const uint64_t rip = process.thread(thread).registers.rip;
  return process.memory().Peek(rip - 1, last) && last[0] == kInt3;
}

Result<std::optional<Contradiction>> CheckFailure(Process& process,
                                                  const Failure& failure) {
  const auto failed = process.tape().IndexOf(failure.thread);
  if (failure.kind != FailureKind::kSignal || !failed) {
    return std::nullopt;
  }
  const ThreadState& state = process.thread(*failed);
  CLEW_ASSIGN_OR_RETURN(sent, SentSignal(process, *failed, failure));
  if (sent || state.phase != ThreadPhase::kRunning) {
    return std::nullopt;
  }
  const bool same_place = state.registers.rip == failure.ip.as_int();
  if (!IsOfInstruction(failure.signal)) {
    return same_place ? std::nullopt
                      : std::optional(Otherwise(process, *failed, failure, {}));
  }
  if (failure.signal == SIGTRAP && same_place &&
      EndsInBreakpoint(process, *failed)) {
    return std::nullopt;
  }
  if (failure.signal == SIGBUS && same_place &&
      TouchesPage(process, *failed, failure.addr.as_int())) {
    return std::nullopt;
  }
  const machine::Stop stop = process.ExecuteUnrecorded(*failed);
  if (stop.kind == machine::StopKind::kUnsupported) {
    return Unsupported("thread {}: {}", failure.thread, stop.detail);
  }
  const bool same_access =
      !HasAddress(stop.fault.kind) || stop.fault.addr == failure.addr.as_int();
  if (SignalOf(stop.fault.kind) == failure.signal && same_place &&
      same_access) {
    return std::nullopt;
  }
  return Otherwise(process, *failed, failure, stop.fault);
}

}  // namespace clew::follower
