#include "recorder/tracer/free_run.h"

#include <asm/unistd_64.h>
#include <sys/user.h>
#include <unistd.h>
#include <x86intrin.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/linux/raw_rules.h"
#include "common/linux/syscall_result.h"
#include "common/linux/syscall_table.h"
#include "common/user_registers.h"
#include "recorder/native/native_run.h"
#include "recorder/native/signal_disposition.h"
#include "recorder/tracer/free_threads.h"
#include "recorder/tracer/image.h"
#include "recorder/tracer/inject.h"
#include "recorder/tracer/places.h"
#include "recorder/tracer/raised_signals.h"
#include "recorder/tracer/shared_memory.h"

// A program that runs free: all threads at once, in the runtime. The recorder
// reads what they log, and is their tracer (ptrace(2)) besides: so it hears of
// new threads, of signals, and of the breakpoints where a thread parks. System
// calls do not stop.
//
// What ends the program (exit, a signal without a handler, the recorder) first
// brings all threads to a stop in the program, with its registers, as if the
// runtime had never been there:
//
//   in its code       parks at its next boundary, which is within 512 records
//   waiting in a call is stopped there; the call has not returned
//
// and then it ends as it would have.

namespace clew::tracer {
namespace {

using recorder::Disposition;
using recorder::NativeEnd;
using recorder::NativeState;
using recorder::NativeThread;
using recorder::SyscallCall;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr useconds_t kIdleMicroseconds = 50;
// How long nothing may have happened for the program to hang, if all of its
// threads wait for each other.
constexpr milliseconds kHangAfter(200);
// How long threads may take to stop.
constexpr milliseconds kStopWithin(10'000);

void FillRules(InputRules& rules) {
  for (uint64_t number = 0; number < rules.calls.size(); ++number) {
    rules.calls[number] = RuleFor(number);
  }
  const std::vector<RawRequestRule> requests = RequestRules();
  rules.request_count =
      static_cast<uint32_t>(std::min(requests.size(), rules.requests.size()));
  std::copy_n(requests.begin(), rules.request_count, rules.requests.begin());
}

class FreeRun final : public recorder::ProgramRun {
 public:
  FreeRun(NativeState& state, SharedMemory shared)
      : state_(state),
        process_(state.process),
        shared_(std::move(shared)),
        threads_(state, shared_) {}

  Status Begin() {
    SharedHeader& header = shared_.header();
    header.tells_inputs = 1;
    FillRules(shared_.rules());
    CLEW_RETURN_IF_ERROR(Inject(process_, shared_));
    state_.hidden = MemoryOf(header.places);
    state_.insns = 0;
    begun_.insert(process_.first_thread());
    return {};
  }

  Result<std::optional<NativeEnd>> Run() override {
    began_ = Clock::now();
    last_news_ = began_;
    CLEW_RETURN_IF_ERROR(process_.Continue(process_.first_thread(), 0));
    while (!state_.end && !state_.replaced) {
      CLEW_RETURN_IF_ERROR(Look());
    }
    if (state_.replaced) {
      shared_.EndReading();
      return std::nullopt;
    }
    CLEW_RETURN_IF_ERROR(StopAll());
    shared_.EndReading();
    return state_.end;
  }

  uint64_t handovers() const override { return 0; }

 private:
  using Thread = FreeThreads::Thread;
  using Stopped = FreeThreads::Stopped;

  Status Look();
  Result<bool> LookAtStops();
  Status OnStop(Tid tid, const TraceeStop& stop);
  Status OnSignal(Tid tid, int signal);
  bool IsDropped(Tid tid, int signal);
  Status OnPark(Tid tid, Thread& thread);
  Status OnExit(Tid tid, Thread& thread);
  Status OnGone(Tid tid);
  Status OnExec(Tid tid, Thread& thread);
  Status OnKill(Tid tid, Thread& thread);
  Status EndBySignal(Tid tid, int signal);
  Status OnRaised(Tid tid, Thread& thread, const siginfo_t& info);
  Status OnInterrupted(Tid tid, Thread& thread);
  Status StopAll();
  Result<bool> AreStopped();
  Status StopInCall(Tid tid, Thread& thread);
  Status Settle(Thread& thread);
  Status TakeOut(Tid tid, Thread& thread, user_regs_struct now, uint64_t ip);
  void EndByExit(Thread& thread);
  bool AllWaitForever();
  bool TimeIsOver() const;
  bool HasOthers(Tid tid) {
    return std::ranges::any_of(process_.Threads(), [&](Tid other) {
      const Thread* const thread = threads_.Find(other);
      return other != tid && (thread == nullptr || !thread->leaves);
    });
  }
  Status EndedFromOutside() const {
    const std::string fault = shared_.FaultText();
    return Unsupported(
        "{}", fault.empty() ? "the program was ended from outside" : fault);
  }

  NativeState& state_;
  TracedProcess& process_;
  SharedMemory shared_;
  FreeThreads threads_;
  std::set<Tid> begun_;  // whose first stop was seen
  // Its signal ends the program, and was taken away until all have stopped.
  std::optional<Tid> held_;
  Clock::time_point began_;
  Clock::time_point last_news_;
};

Status FreeRun::Look() {
  CLEW_RETURN_IF_ERROR(threads_.Read());
  CLEW_ASSIGN_OR_RETURN(has_stopped, LookAtStops());
  const Clock::time_point now = Clock::now();
  if (TimeIsOver() && !state_.end) {
    state_.EndAs(FailureKind::kTimeLimit);
  } else if (threads_.TakeNews() || has_stopped) {
    last_news_ = now;
  } else if (!state_.end && now - last_news_ > kHangAfter && AllWaitForever()) {
    state_.EndAs(FailureKind::kHang);
  } else {
    usleep(kIdleMicroseconds);
  }
  return {};
}

bool FreeRun::TimeIsOver() const {
  const std::chrono::seconds limit(state_.config.timeout_s);
  return limit.count() > 0 && Clock::now() - began_ > limit;
}

// ---- Stops -----------------------------------------------------------------

// Returns whether there was one.
Result<bool> FreeRun::LookAtStops() {
  bool has_stopped = false;
  for (const Tid tid : process_.Threads()) {
    const Thread* const thread = threads_.Find(tid);
    if (thread != nullptr && thread->stopped != Stopped::kNot) {
      continue;
    }
    CLEW_ASSIGN_OR_RETURN(stop, process_.Wait(tid, false));
    if (stop.kind != TraceeStop::Kind::kRunning) {
      has_stopped = true;
      CLEW_RETURN_IF_ERROR(OnStop(tid, stop));
      if (state_.replaced) {
        break;
      }
    }
  }
  return has_stopped;
}

Status FreeRun::OnStop(Tid tid, const TraceeStop& stop) {
  switch (stop.kind) {
    case TraceeStop::Kind::kClone:
      return process_.Continue(tid, 0);
    case TraceeStop::Kind::kFork:
      CLEW_RETURN_IF_ERROR(process_.Wait(stop.new_thread, true));
      CLEW_RETURN_IF_ERROR(process_.LetGo(stop.new_thread));
      return process_.Continue(tid, 0);
    case TraceeStop::Kind::kExited:
    case TraceeStop::Kind::kKilled:
      return OnGone(tid);
    case TraceeStop::Kind::kSignal:
    case TraceeStop::Kind::kTrap:
      return OnSignal(
          tid, stop.kind == TraceeStop::Kind::kTrap ? SIGTRAP : stop.signal);
    default:
      return process_.Continue(tid, 0);
  }
}

Status FreeRun::OnGone(Tid tid) {
  const Thread* const thread = threads_.Find(tid);
  return thread != nullptr && thread->leaves && tid != process_.first_thread()
             ? threads_.NoteGone(tid, __rdtsc())
             : EndedFromOutside();
}

Status FreeRun::OnSignal(Tid tid, int signal) {
  if (signal == SIGSTOP && begun_.insert(tid).second) {
    return process_.Continue(tid, 0);  // a new thread
  }
  Thread* thread = threads_.Find(tid);
  if (thread == nullptr) {  // it may have begun just now
    CLEW_RETURN_IF_ERROR(threads_.Read());
    thread = threads_.Find(tid);
  }
  if (thread != nullptr && signal == SIGTRAP) {
    if (thread->interrupted && threads_.StateOf(*thread).leap.has_ended != 0) {
      return OnInterrupted(tid, *thread);
    }
    if (threads_.StateOf(*thread).tell.parked != Parked::kNot) {
      return OnPark(tid, *thread);
    }
  }
  switch (recorder::DispositionOf(process_, tid, signal)) {
    case Disposition::kHandled:
      return process_.Continue(tid, signal);
    case Disposition::kIgnored:
      if (thread != nullptr && !IsDropped(tid, signal)) {
        threads_.StateOf(*thread).tell.is_interrupted = 1;
      }
      return process_.Continue(tid, 0);
    case Disposition::kStops:
      if (state_.on_stop) {
        state_.on_stop(signal);
      }
      return process_.Continue(tid, 0);
    case Disposition::kEnds:
      return EndBySignal(tid, signal);
  }
  return {};
}

// Whether it would have been dropped as it was sent, if nobody traced the
// process.
bool FreeRun::IsDropped(Tid tid, int signal) {
  const Thread* const first = threads_.Find(process_.first_thread());
  const SignalState signals =
      first != nullptr ? threads_.StateOf(*first).signals : SignalState();
  if (signals.is_holding != 0 || signals.is_blocking != 0) {
    return recorder::IsDropped(
        process_, tid, signal,
        signals.is_holding != 0 ? signals.held_mask : signals.blocked_mask);
  }
  return recorder::IsDropped(process_, tid, signal);
}

Status FreeRun::EndBySignal(Tid tid, int signal) {
  CLEW_ASSIGN_OR_RETURN(info, process_.SignalInfo(tid));
  Thread* const thread = threads_.Find(tid);
  if (IsRaised(info.si_signo, info.si_code)) {
    return thread != nullptr ? OnRaised(tid, *thread, info)
                             : Unsupported("the tracer failed in the program");
  }
  if (!state_.end) {
    held_ = tid;
    Failure failure;
    failure.kind = FailureKind::kSignal;
    failure.signal = signal;
    failure.thread = tid;
    state_.end =
        NativeEnd{.failure = failure, .signal = signal, .code = info.si_code};
  }
  return process_.Continue(tid, 0);
}

// The runtime knows which instruction it is, and hands on what the thread ran.
Status FreeRun::OnRaised(Tid tid, Thread& thread, const siginfo_t& info) {
  CLEW_ASSIGN_OR_RETURN(registers, process_.Registers(tid));
  const Places& places = shared_.header().places;
  if (registers.rip - places.image < RuntimeImage().size() ||
      thread.interrupted) {
    return Unsupported("the tracer failed in the program, at {:#x}",
                       registers.rip);
  }
  thread.interrupted = registers;
  thread.raised = info;
  threads_.StateOf(thread).leap.has_ended = 0;
  registers.rdi = registers.rip;
  registers.rip = places.image + kInterruptedAt;
  registers.eflags = kClearFlags;
  CLEW_RETURN_IF_ERROR(process_.SetRegisters(tid, registers));
  return process_.Continue(tid, 0);
}

Status FreeRun::OnInterrupted(Tid tid, Thread& thread) {
  const ThreadState& state = threads_.StateOf(thread);
  user_regs_struct now = thread.interrupted.value_or(user_regs_struct());
  if (state.scratch < kUserGprs.size()) {
    now.*kUserGprs[state.scratch] = state.gpr[state.scratch];
  }
  CLEW_RETURN_IF_ERROR(TakeOut(tid, thread, now, state.signals.boundary));
  thread.stopped = Stopped::kParked;
  if (state_.end) {
    return {};
  }
  Failure failure;
  failure.kind = FailureKind::kSignal;
  failure.signal = thread.raised.si_signo;
  failure.thread = tid;
  failure.ip = TraceeAddr(state.signals.boundary);
  if (failure.signal == SIGSEGV || failure.signal == SIGBUS) {
    failure.addr =
        TraceeAddr(reinterpret_cast<uint64_t>(thread.raised.si_addr));
  }
  state_.end = NativeEnd{.failure = failure,
                         .signal = failure.signal,
                         .code = thread.raised.si_code};
  return {};
}

Status FreeRun::OnPark(Tid tid, Thread& thread) {
  switch (threads_.StateOf(thread).tell.parked) {
    case Parked::kExit:
      return OnExit(tid, thread);
    case Parked::kExitGroup:
      EndByExit(thread);
      return {};
    case Parked::kExec:
      return OnExec(tid, thread);
    case Parked::kKill:
      return OnKill(tid, thread);
    default:
      thread.stopped = Stopped::kParked;
      return {};
  }
}

Status FreeRun::OnExit(Tid tid, Thread& thread) {
  if (HasOthers(tid) && !state_.end) {
    thread.leaves = true;
    return process_.Continue(tid, 0);
  }
  EndByExit(thread);
  return {};
}

void FreeRun::EndByExit(Thread& thread) {
  const SyscallCall call = threads_.NoteCall(thread);
  thread.stopped = Stopped::kParked;
  if (!state_.end) {
    state_.EndByExit(*thread.native, call);
  }
}

Status FreeRun::OnKill(Tid tid, Thread& thread) {
  const SyscallCall call = threads_.NoteCall(thread);
  if (!recorder::KillsItself(call, process_.process())) {
    thread.native->call.reset();
    return process_.Continue(tid, 0);
  }
  thread.stopped = Stopped::kParked;
  if (!state_.end) {
    state_.EndByKill(*thread.native);
  }
  return {};
}

// It is made without the runtime, which is gone then.
Status FreeRun::OnExec(Tid tid, Thread& thread) {
  if (state_.end) {
    threads_.NoteCall(thread);
    thread.stopped = Stopped::kParked;
    return {};
  }
  CLEW_ASSIGN_OR_RETURN(parked, process_.Registers(tid));
  CLEW_RETURN_IF_ERROR(
      TakeOut(tid, thread, parked, threads_.StateOf(thread).signals.boundary));
  CLEW_ASSIGN_OR_RETURN(stop, process_.Execute(tid));
  if (stop.kind == TraceeStop::Kind::kExec) {
    state_.replaced = true;
    return {};
  }
  if (stop.kind == TraceeStop::Kind::kExited ||
      stop.kind == TraceeStop::Kind::kKilled) {
    return EndedFromOutside();
  }
  CLEW_ASSIGN_OR_RETURN(after, process_.Registers(tid));
  threads_.StateOf(thread).scratch = after.rax;
  CLEW_RETURN_IF_ERROR(process_.SetRegisters(tid, parked));
  return process_.Continue(tid, stop.signal);
}

// ---- The end ---------------------------------------------------------------

// Lets a stopped thread have these registers, at an address of the program.
Status FreeRun::TakeOut(Tid tid, Thread& thread, user_regs_struct now,
                        uint64_t ip) {
  const ThreadState& state = threads_.StateOf(thread);
  if (!thread.interrupted) {
    for (size_t i = 0; i < kUserGprs.size(); ++i) {
      now.*kUserGprs[i] = state.gpr[i];
    }
    now.eflags = state.rflags;
  }
  now.rip = ip;
  now.gs_base = 0;
  now.orig_rax = UINT64_MAX;
  return process_.SetRegisters(tid, now);
}

Status FreeRun::StopInCall(Tid tid, Thread& thread) {
  CLEW_ASSIGN_OR_RETURN(stop, process_.Interrupt(tid));
  while (stop.kind != TraceeStop::Kind::kSignal || stop.signal != SIGSTOP) {
    if (stop.kind == TraceeStop::Kind::kExited ||
        stop.kind == TraceeStop::Kind::kKilled) {
      return EndedFromOutside();
    }
    CLEW_RETURN_IF_ERROR(OnStop(tid, stop));
    if (thread.stopped != Stopped::kNot) {
      CLEW_RETURN_IF_ERROR(process_.Continue(tid, 0));
    }
    CLEW_ASSIGN_OR_RETURN(next, process_.Wait(tid, true));
    stop = next;
  }
  if (thread.stopped != Stopped::kNot) {
    return {};
  }
  CLEW_ASSIGN_OR_RETURN(registers, process_.Registers(tid));
  const auto result = static_cast<int64_t>(registers.rax);
  const bool waits = threads_.StateOf(thread).tell.is_in_call != 0 &&
                     (AsksForRestart(result) || result == -EINTR);
  if (!waits) {
    return process_.Continue(tid, 0);
  }
  thread.stopped = Stopped::kInCall;
  return {};
}

Result<bool> FreeRun::AreStopped() {
  bool are_stopped = true;
  for (const Tid tid : process_.Threads()) {
    Thread* const thread = threads_.Find(tid);
    if (thread == nullptr) {
      are_stopped = are_stopped && process_.IsAsleep(tid);
      continue;
    }
    if (thread->leaves) {
      // The kernel keeps the first one until all others have ended.
      are_stopped = are_stopped && tid == process_.first_thread() &&
                    thread->is_read && process_.IsAsleep(tid);
      continue;
    }
    if (thread->stopped == Stopped::kNot &&
        threads_.StateOf(*thread).tell.is_in_call != 0 &&
        process_.IsAsleep(tid)) {
      CLEW_RETURN_IF_ERROR(StopInCall(tid, *thread));
    }
    are_stopped = are_stopped && thread->stopped != Stopped::kNot;
  }
  return are_stopped;
}

Status FreeRun::StopAll() {
  shared_.header().is_stopping.store(1);
  const Clock::time_point until = Clock::now() + kStopWithin;
  for (;;) {
    CLEW_RETURN_IF_ERROR(threads_.Read());
    CLEW_RETURN_IF_ERROR(LookAtStops());
    CLEW_ASSIGN_OR_RETURN(are_stopped, AreStopped());
    if (are_stopped) {
      break;
    }
    if (Clock::now() > until) {
      return Unsupported("the program's threads do not stop");
    }
    usleep(kIdleMicroseconds);
  }
  CLEW_RETURN_IF_ERROR(threads_.Read());
  uint64_t last = 0;
  for (auto& [tid, thread] : threads_.all()) {
    last = std::max(last, thread.log->last_tsc());
  }
  state_.now = last;
  for (auto& [tid, thread] : threads_.all()) {
    CLEW_RETURN_IF_ERROR(thread.leaves     ? thread.log->End(__rdtsc())
                         : thread.is_child ? thread.log->End(last)
                                           : Settle(thread));
  }
  const Thread* const failing = held_ ? threads_.Find(*held_) : nullptr;
  if (failing != nullptr && state_.end) {
    state_.end->failure.ip = TraceeAddr(failing->native->ip);
  }
  return {};
}

// The thread is stopped, and all it logged is read.
Status FreeRun::Settle(Thread& thread) {
  const Tid tid = thread.native->tid;
  const ThreadState& state = threads_.StateOf(thread);
  if (thread.stopped == Stopped::kInCall) {
    threads_.NoteCall(thread);
    CLEW_ASSIGN_OR_RETURN(now, process_.Registers(tid));
    const uint64_t result = now.rax;
    CLEW_RETURN_IF_ERROR(TakeOut(tid, thread, now, thread.native->ip));
    CLEW_ASSIGN_OR_RETURN(out, process_.Registers(tid));
    out.rax = result;
    CLEW_RETURN_IF_ERROR(process_.SetRegisters(tid, out));
    thread.log->StopAt(thread.native->ip);
    return {};
  }
  if (!thread.interrupted) {
    CLEW_ASSIGN_OR_RETURN(now, process_.Registers(tid));
    CLEW_RETURN_IF_ERROR(TakeOut(tid, thread, now, state.signals.boundary));
  }
  thread.log->StopAt(thread.native->call ? thread.native->ip
                                         : state.signals.boundary);
  return {};
}

bool FreeRun::AllWaitForever() {
  if (state_.uses_timers) {
    return false;
  }
  for (const Tid tid : process_.Threads()) {
    Thread* const thread = threads_.Find(tid);
    if (thread == nullptr) {
      if (!process_.IsAsleep(tid)) {
        return false;
      }
      continue;
    }
    if (thread->leaves) {
      continue;
    }
    if (threads_.StateOf(*thread).tell.is_in_call == 0 ||
        !process_.IsAsleep(tid)) {
      return false;
    }
    const bool is_known = threads_.NoteCall(*thread).row != nullptr;
    thread->native->state = NativeThread::State::kBlocked;
    const bool waits =
        is_known && WaitsForever(*thread->native, process_.process());
    thread->native->state = NativeThread::State::kOnCore;
    thread->native->call.reset();
    if (!waits) {
      return false;
    }
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<recorder::ProgramRun>> MakeFreeRun(
    recorder::NativeState& state) {
  CLEW_ASSIGN_OR_RETURN(shared, SharedMemory::Create());
  auto run = std::make_unique<FreeRun>(state, std::move(shared));
  CLEW_RETURN_IF_ERROR(run->Begin());
  return run;
}

}  // namespace clew::tracer
