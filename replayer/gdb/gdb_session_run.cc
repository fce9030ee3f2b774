// The part of GdbSession that moves in time.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "common/text/hex.h"
#include "replayer/gdb/gdb_registers.h"
#include "replayer/gdb/gdb_session.h"

namespace clew::replayer::gdb {
namespace {

constexpr int kSigTrap = 5;
constexpr int kSigInt = 2;

// Linux x86-64 numbers that gdb numbers differently, from
// linux arch/x86/include/uapi/asm/signal.h and include/gdb/signals.def.
constexpr int kSignalUnknown = 143;  // GDB_SIGNAL_UNKNOWN
constexpr std::array<std::pair<int, int>, 12> kRenumbered = {
    {{7, 10},
     {10, 30},
     {12, 31},
     {16, kSignalUnknown},
     {17, 20},
     {18, 19},
     {19, 17},
     {20, 18},
     {23, 16},
     {29, 23},
     {30, 32},
     {31, 12}}};

std::string Expedite(const machine::Registers& registers) {
  std::string text;
  for (const size_t number : {kRegisterRbp, kRegisterRsp, kRegisterRip}) {
    text += fmt::format("{:02x}:{};", number, RegisterHex(registers, number));
  }
  return text;
}

// One action of a vCont packet.
struct Action {
  char kind = 'c';
  uint64_t begin = 0;  // range of an r action
  uint64_t end = 0;
  std::optional<Tid> thread;
};

std::optional<Action> ParseAction(std::string_view text) {
  Action action;
  FieldReader fields(text);
  if (fields.Take("c") || fields.Take("t")) {
    action.kind = text.front();
  } else if (fields.Take("C") || fields.Take("S")) {
    action.kind = text.front() == 'C' ? 'c' : 's';
    if (!fields.TakeHex()) {  // a signal: the recording has its own
      return std::nullopt;
    }
  } else if (fields.Take("s")) {
    action.kind = 's';
  } else if (fields.Take("r")) {
    action.kind = 'r';
    const auto begin = fields.TakeHex();
    const auto end = fields.TakeCommaHex();
    if (!begin || !end) {
      return std::nullopt;
    }
    action.begin = *begin;
    action.end = *end;
  } else {
    return std::nullopt;
  }
  if (fields.Take(":")) {
    const auto id = fields.TakeThread();
    if (!id) {
      return std::nullopt;
    }
    if (*id > 0) {
      action.thread = Tid(*id);
    }
  }
  return fields.at_end() ? std::optional(action) : std::nullopt;
}

}  // namespace

int GdbSignal(int linux_signal) {
  for (const auto& [from, to] : kRenumbered) {
    if (from == linux_signal) {
      return to;
    }
  }
  return linux_signal > 0 && linux_signal < 32 ? linux_signal : kSignalUnknown;
}

// The order of threads is that of the schedule whatever gdb asks for, so all
// that matters is whether one thread is to be stepped.
std::string GdbSession::ResumeV(FieldReader fields) {
  while (!fields.at_end()) {
    const auto action = ParseAction(fields.TakeUntil(';'));
    if (!action) {
      return "E01";
    }
    const Tid thread = action->thread.value_or(GeneralThread());
    if (action->kind == 's') {
      return ResumeForward(thread);
    }
    if (action->kind == 'r') {
      return StepRange(thread, action->begin, action->end);
    }
  }
  return ResumeForward(std::nullopt);
}

std::string GdbSession::ResumeForward(std::optional<Tid> step) {
  auto stop = timeline_.RunForward(points_, step,
                                   [this] { return client_.Interrupted(); });
  return stop ? Arrived(*stop) : Stopped(stop);
}

// Steps until the thread leaves [begin, end), as `step` over a line wants.
std::string GdbSession::StepRange(Tid tid, uint64_t begin, uint64_t end) {
  while (true) {
    const auto stop = timeline_.RunForward(
        points_, tid, [this] { return client_.Interrupted(); });
    if (!stop) {
      return Stopped(stop);
    }
    if (stop->cause != StopCause::kStep) {
      return Arrived(*stop);
    }
    const auto registers = timeline_.target().ReadRegisters(tid);
    const bool inside =
        registers && registers->rip >= begin && registers->rip < end;
    if (!inside || points_.HasBreakpoint(registers->rip)) {
      return Stopped(stop);
    }
    if (client_.Interrupted()) {
      return Stopped(TimelineStop{StopCause::kInterrupted, tid, {}});
    }
  }
}

std::string GdbSession::ReverseStep() {
  return Stopped(
      timeline_.StepBackward(continue_thread_.value_or(GeneralThread())));
}

std::string GdbSession::ReverseContinue() {
  return Stopped(
      timeline_.RunBackward(points_, [this] { return client_.Interrupted(); }));
}

// Coming to the end shows the failure, as often as it is tried.
std::string GdbSession::Arrived(const TimelineStop& stop) {
  const bool failed = stop.cause == StopCause::kEnd && FailureSignal();
  std::string reply = Stopped(stop);
  return failed ? PresentStop() : reply;
}

std::string GdbSession::Stopped(const Result<TimelineStop>& stop) {
  if (!stop) {
    client_.Notify("O" +
                   ToHex(fmt::format("clew: {}\n", stop.error().message)));
    return PresentStop();
  }
  general_thread_ = stop->thread;
  return StopReply(*stop);
}

std::string GdbSession::StopReply(const TimelineStop& stop) const {
  const int signal = stop.cause == StopCause::kInterrupted ? kSigInt : kSigTrap;
  std::string reply = fmt::format("T{:02x}", signal);
  if (const auto registers = timeline_.target().ReadRegisters(stop.thread)) {
    reply += Expedite(*registers);
  }
  return reply + fmt::format("thread:{:x};", stop.thread) + StopReason(stop);
}

std::string GdbSession::StopReason(const TimelineStop& stop) const {
  switch (stop.cause) {
    case StopCause::kBreakpoint: {
      const auto registers = timeline_.target().ReadRegisters(stop.thread);
      const auto found =
          registers ? breakpoints_.find(registers->rip) : breakpoints_.end();
      const bool hardware =
          found != breakpoints_.end() && found->second.hardware;
      if (hardware) {
        return tells_hardware_breaks_ ? "hwbreak:;" : "";
      }
      return tells_software_breaks_ ? "swbreak:;" : "";
    }
    case StopCause::kWatchpoint: {
      static constexpr std::string_view kNames[] = {"watch", "rwatch",
                                                    "awatch"};
      return fmt::format("{}:{:x};",
                         kNames[static_cast<size_t>(stop.watch.kind)],
                         stop.watch.addr);
    }
    case StopCause::kBegin:
      return "replaylog:begin;";
    case StopCause::kEnd:
      return "replaylog:end;";
    case StopCause::kStep:
    case StopCause::kInterrupted:
      return "";
  }
  return "";
}

std::optional<int> GdbSession::FailureSignal() const {
  const ReplayTarget& target = timeline_.target();
  const Failure failure = target.failure();
  if (target.ThreadAt(timeline_.position()) ||
      failure.kind != FailureKind::kSignal) {
    return std::nullopt;
  }
  return failure.signal;
}

// The reply to "?": where we are, however we came.
std::string GdbSession::PresentStop() const {
  std::string reply =
      StopReply(TimelineStop{StopCause::kStep, timeline_.CurrentThread(), {}});
  if (const auto signal = FailureSignal()) {
    reply.replace(1, 2, fmt::format("{:02x}", GdbSignal(*signal)));
  }
  return reply;
}

}  // namespace clew::replayer::gdb
