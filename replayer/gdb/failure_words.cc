#include "replayer/gdb/failure_words.h"

#include <fmt/format.h>
#include <signal.h>

#include "common/text/signal_text.h"

namespace clew::replayer::gdb {
namespace {

// "the read of 0x10, where nothing is mapped".
std::string AccessText(const machine::Fault& fault, const Failure& failure) {
  if (fault.addr == failure.ip.as_int() && !fault.write) {
    return fmt::format("jump to {:#x}, where there is no code", fault.addr);
  }
  const char* const why = fault.kind == machine::FaultKind::kUnmapped
                              ? "where nothing is mapped"
                              : "which the mapping does not allow";
  return fmt::format("{} {:#x}, {}", fault.write ? "write to" : "read of",
                     fault.addr, why);
}

std::string FaultText(const machine::Fault& fault, const Failure& failure) {
  using machine::FaultKind;
  switch (fault.kind) {
    case FaultKind::kUnmapped:
    case FaultKind::kProtection:
      return AccessText(fault, failure);
    case FaultKind::kGeneral:
      return "an address that no program can have, or a misaligned operand";
    case FaultKind::kDivide:
      return "division by zero, or a quotient that does not fit";
    case FaultKind::kIllegal:
      return "an instruction that the CPU does not have";
    case FaultKind::kBreakpoint:
      return "a breakpoint instruction";
    case FaultKind::kNone:
      break;
  }
  return failure.signal == SIGABRT
             ? "from abort (a failed assertion, an uncaught exception, a "
               "damaged heap)"
             : "sent by a system call, not raised by an instruction";
}

std::string NameOf(const ReplayTarget& target, Tid tid) {
  for (const TargetThread& thread : target.Threads()) {
    if (thread.tid == tid && !thread.name.empty()) {
      return fmt::format("thread \"{}\" (tid {})", thread.name, tid);
    }
  }
  return fmt::format("thread (tid {})", tid);
}

std::string SignalWords(const ReplayTarget& target, const Failure& failure) {
  std::string text =
      fmt::format("{} failed: {}", NameOf(target, failure.thread),
                  SignalText(failure.signal));
  if (const auto fault = target.FailingFault()) {
    text += ", " + FaultText(*fault, failure);
  }
  return text + fmt::format(", at {:#x}", failure.ip);
}

std::string FailureWords(const ReplayTarget& target) {
  const Failure failure = target.failure();
  switch (failure.kind) {
    case FailureKind::kSignal:
      return SignalWords(target, failure);
    case FailureKind::kExit:
      return fmt::format("{} ended the program: exit status {}",
                         NameOf(target, failure.thread), failure.exit_status);
    case FailureKind::kHang:
      return "the run hung: no thread could go on";
    case FailureKind::kTimeLimit:
      return "the recording's time limit was over";
    case FailureKind::kNone:
      return fmt::format("the run did not fail: exit status {}",
                         failure.exit_status);
  }
  return "";
}

}  // namespace

std::string DescribeFailure(const Timeline& timeline) {
  const Position now = timeline.position();
  const Position end = timeline.target().end();
  return fmt::format("{}\nposition {} of {}{}\n",
                     FailureWords(timeline.target()), now, end,
                     now == 0     ? ", the start"
                     : now == end ? ", the end"
                                  : "");
}

}  // namespace clew::replayer::gdb
