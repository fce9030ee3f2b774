#include "recorder/tracer/free/free_run.h"

#include <asm/unistd_64.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <unistd.h>
#include <x86intrin.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/linux/syscall_result.h"
#include "common/linux/syscall_table.h"
#include "common/user_registers.h"
#include "recorder/native/native_run.h"
#include "recorder/native/tracee/signal_disposition.h"
#include "recorder/tracer/free/death_mark.h"
#include "recorder/tracer/free/free_halves.h"
#include "recorder/tracer/free/free_start.h"
#include "recorder/tracer/free/free_stops.h"
#include "recorder/tracer/free/free_threads.h"
#include "recorder/tracer/image.h"
#include "recorder/tracer/inject.h"
#include "recorder/tracer/leave_runtime.h"
#include "recorder/tracer/places.h"
#include "recorder/tracer/raised_signals.h"
#include "recorder/tracer/shared_memory.h"

// A program that runs free: all threads at once, in the runtime. The recorder
// reads what they log, and is their tracer (ptrace(2)) besides: so it hears of
// new threads and of signals. System calls do not stop.
//
// What ends the program (exit, a signal without a handler, the recorder) first
// brings all threads to a stop in the program (FreeStops), with its registers,
// as if the runtime had never been there; then it ends as it would have.
//
// Where the end of the recording is kept (FreeHalves), they come to a stop
// like this whenever a half begins, and go on from it.

namespace clew::tracer {
namespace {

using recorder::Disposition;
using recorder::NativeEnd;
using recorder::NativeState;
using recorder::NativeThread;
using recorder::SyscallCall;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// How often it is looked for stops for a while behind one, and for how long:
// they come together. Else a thread that has something to do for the recorder
// wakes it, and signals, of which nobody tells, wait for some time.
constexpr useconds_t kIdleMicroseconds = 50;
constexpr milliseconds kAlertFor(2);
// How long nothing may have happened for the program to hang, if all of its
// threads wait for each other.
constexpr milliseconds kHangAfter(200);
// How long threads may take to stop.
constexpr milliseconds kStopWithin(10'000);
// As SharedHeader::fragments_kept, of what somebody needs while it is recorded:
// some 250 MB of its memory.
constexpr uint32_t kFragmentsOfService = 1 << 18;
// For how long the clock of the log is measured.
constexpr int64_t kMeasuredMs = 20;

// As many as can be blocked.
constexpr uint64_t kAllSignals = ~(SignalBit(SIGKILL) | SignalBit(SIGSTOP));

class FreeRun final : public recorder::ProgramRun {
 public:
  FreeRun(NativeState& state, recorder::NativeProgram& program,
          SharedMemory shared, uint64_t ring_bytes)
      : state_(state),
        process_(state.process),
        shared_(std::move(shared)),
        threads_(state, shared_),
        stops_(
            state, shared_, threads_,
            [this](Tid tid, const TraceeStop& stop) {
              return OnStop(tid, stop);
            },
            [this](Tid tid, Thread& thread) { return OnPark(tid, thread); }),
        halves_(ring_bytes == 0
                    ? nullptr
                    : std::make_unique<FreeHalves>(state, program, threads_,
                                                   stops_, ring_bytes)) {}

  Status Begin() {
    if (process_.is_attached() || halves_ != nullptr) {
      shared_.header().fragments_kept = kFragmentsOfService;
    }
    CLEW_RETURN_IF_ERROR(StartFree(state_, shared_));
    mark_.emplace(shared_.header().recorder);
    for (const auto& thread : state_.threads) {
      begun_.insert(thread->tid);
    }
    return {};
  }
  Result<std::optional<NativeEnd>> Run() override {
    const Status ran = RunToEnd();
    if (!ran) {
      shared_.header().is_stopping.store(0);
    }
    shared_.EndReading();
    CLEW_RETURN_IF_ERROR(ran);
    return state_.end;
  }
  uint64_t handovers() const override { return 0; }
  Status Finish(recorder::Outcome& outcome) override {
    return halves_ == nullptr ? Status() : halves_->Finish(outcome);
  }
  Status Leave(
      const std::vector<recorder::Attachment::Stopped>& threads) override;

 private:
  using Thread = FreeThreads::Thread;
  using Stopped = FreeThreads::Stopped;

  Status LetThreadsBegin();
  Status RunToEnd();
  void MeasureTicks(Clock::time_point now);
  Status Look();
  Status OnStop(Tid tid, const TraceeStop& stop);
  Result<Thread*> FindNow(Tid tid);
  Status OnFork(Tid parent, Tid child);
  Status OnSignal(Tid tid, int signal);
  bool IsDropped(Tid tid, int signal);
  uint64_t MaskOfFirst();
  Status OnPark(Tid tid, Thread& thread);
  void OnExit(Tid tid, Thread& thread);
  Status OnGone(Tid tid);
  Status OnExec(Tid tid, Thread& thread);
  void OnKill(Thread& thread);
  Status EndBySignal(Tid tid, Thread* thread, int signal);
  Status HoldSignals(Tid tid, ThreadState& state);
  Status OnRaised(Tid tid, Thread& thread, const siginfo_t& info);
  Status OnInterrupted(Tid tid, Thread& thread);
  Status StopAll();
  Status SetMasks();
  Status ComeToSignal(Tid tid, int signal);
  Status Settle(Thread& thread);
  void EndByExit(Thread& thread);
  bool AllWaitForever();
  bool TimeIsOver() const;
  bool HasOthers(Tid tid) {
    return std::ranges::any_of(process_.Threads(), [&](Tid other) {
      const Thread* const thread = threads_.Find(other);
      return other != tid && (thread == nullptr || !thread->leaves);
    });
  }

  NativeState& state_;
  TracedProcess& process_;
  SharedMemory shared_;
  FreeThreads threads_;
  FreeStops stops_;
  std::unique_ptr<FreeHalves> halves_;  // null: all of it is kept
  std::set<Tid> begun_;                 // whose first stop was seen
  std::optional<DeathMark> mark_;
  // Its signal ends the program, and was taken away until all have stopped.
  std::optional<Tid> held_;
  Clock::time_point began_;
  uint64_t began_tsc_ = 0;
  Clock::time_point last_news_;
  Clock::time_point alert_until_;
};

// ---- The beginning ---------------------------------------------------------

// The others once the first one has begun, which takes over the program's
// handlers.
Status FreeRun::LetThreadsBegin() {
  const Tid first = process_.first_thread();
  const std::set<Tid> all = begun_;  // the first one may make more
  CLEW_RETURN_IF_ERROR(process_.Continue(first, 0));
  while (__atomic_load_n(&shared_.slot(0).tid, __ATOMIC_ACQUIRE) == 0) {
    CLEW_ASSIGN_OR_RETURN(stop, process_.Wait(first, false));
    if (stop.kind != TraceeStop::Kind::kRunning) {
      CLEW_RETURN_IF_ERROR(OnStop(first, stop));
    }
  }
  for (const Tid thread : all) {
    if (thread != first) {
      CLEW_RETURN_IF_ERROR(process_.Continue(thread, 0));
    }
  }
  return {};
}

Status FreeRun::RunToEnd() {
  began_ = Clock::now();
  began_tsc_ = __rdtsc();
  last_news_ = began_;
  CLEW_RETURN_IF_ERROR(LetThreadsBegin());
  while (!state_.end && !state_.replaced) {
    CLEW_RETURN_IF_ERROR(Look());
  }
  return state_.replaced ? Status() : StopAll();
}

// Once, after long enough.
void FreeRun::MeasureTicks(Clock::time_point now) {
  const auto ms =
      std::chrono::duration_cast<milliseconds>(now - began_).count();
  if (ms >= kMeasuredMs && shared_.header().ticks_per_ms.load() == 0) {
    shared_.header().ticks_per_ms.store((__rdtsc() - began_tsc_) /
                                        static_cast<uint64_t>(ms));
  }
}

Status FreeRun::Look() {
  CLEW_RETURN_IF_ERROR(threads_.Read());
  CLEW_ASSIGN_OR_RETURN(has_stopped, stops_.Look());
  const Clock::time_point now = Clock::now();
  MeasureTicks(now);
  const bool is_over =
      TimeIsOver() ||
      // Nothing can be made of a bundle without a stream.
      (state_.CountInsns() > 0 && state_.is_over && state_.is_over());
  if (is_over && !state_.end) {
    state_.EndAs(FailureKind::kTimeLimit);
  } else if (threads_.TakeNews() || has_stopped) {
    last_news_ = now;
  } else if (!state_.end && now - last_news_ > kHangAfter && AllWaitForever()) {
    state_.EndAs(FailureKind::kHang);
  } else if (now < alert_until_) {
    usleep(kIdleMicroseconds);
  } else if (shared_.Sleep()) {
    alert_until_ = now + kAlertFor;
  }
  if (has_stopped) {
    alert_until_ = now + kAlertFor;
  }
  const bool goes_on = !state_.end && !state_.replaced;
  return goes_on && halves_ != nullptr ? halves_->BeginIfFull() : Status();
}

bool FreeRun::TimeIsOver() const {
  const std::chrono::seconds limit(state_.config.timeout_s);
  return limit.count() > 0 && Clock::now() - began_ > limit;
}

// ---- Stops -----------------------------------------------------------------

Status FreeRun::OnStop(Tid tid, const TraceeStop& stop) {
  switch (stop.kind) {
    case TraceeStop::Kind::kClone:
      return process_.Continue(tid, 0);
    case TraceeStop::Kind::kFork:
      return OnFork(tid, stop.new_thread);
    case TraceeStop::Kind::kExited:
    case TraceeStop::Kind::kKilled:
      return OnGone(tid);
    case TraceeStop::Kind::kSignal:
    case TraceeStop::Kind::kTrap:
      if (stop.is_without_signal) {
        return process_.Continue(tid, 0);
      }
      return OnSignal(
          tid, stop.kind == TraceeStop::Kind::kTrap ? SIGTRAP : stop.signal);
    default:
      return process_.Continue(tid, 0);
  }
}

// nullptr: it has not begun.
Result<FreeRun::Thread*> FreeRun::FindNow(Tid tid) {
  if (threads_.Find(tid) == nullptr) {  // it may have begun just now
    CLEW_RETURN_IF_ERROR(threads_.Read());
  }
  return threads_.Find(tid);
}

// The parent first: where it blocks signals to fork, the child's end is not to
// come before it lets them in again.
Status FreeRun::OnFork(Tid parent, Tid child) {
  CLEW_ASSIGN_OR_RETURN(thread, FindNow(parent));
  const bool leaves =
      thread != nullptr && threads_.StateOf(*thread).tell.is_forking != 0;
  CLEW_RETURN_IF_ERROR(process_.Continue(parent, 0));
  CLEW_RETURN_IF_ERROR(process_.Wait(child, true));
  if (!leaves) {
    return process_.LetGo(child);
  }
  return FreeProcess(
      process_, child, shared_, [&] { return state_.on_child(child, parent); },
      [&] { return state_.LetChildGo(child); });
}

Status FreeRun::OnGone(Tid tid) {
  const Thread* const thread = threads_.Find(tid);
  return thread != nullptr && thread->leaves && tid != process_.first_thread()
             ? threads_.NoteGone(tid, __rdtsc())
             : stops_.EndedFromOutside();
}

Status FreeRun::OnSignal(Tid tid, int signal) {
  if (signal == SIGSTOP && begun_.insert(tid).second) {
    return process_.Continue(tid, 0);  // a new thread
  }
  CLEW_ASSIGN_OR_RETURN(thread, FindNow(tid));
  if (thread != nullptr && signal == SIGTRAP && thread->interrupted &&
      threads_.StateOf(*thread).leap.has_ended != 0) {
    return OnInterrupted(tid, *thread);
  }
  switch (recorder::DispositionOf(tid, signal)) {
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
      return EndBySignal(tid, thread, signal);
  }
  return {};
}

// Whether it would have been dropped as it was sent, if nobody traced the
// process.
bool FreeRun::IsDropped(Tid tid, int signal) {
  return recorder::IsDropped(tid, signal, MaskOfFirst());
}

// The program's. Where the kernel blocks all signals, the runtime may have had
// it do so and not say it yet, or not any more: that counts as none blocked. So
// a program whose first thread blocks all signals itself does not see that one
// which is ignored has interrupted a call of another thread.
uint64_t FreeRun::MaskOfFirst() {
  const Tid first = process_.first_thread();
  const Thread* const thread = threads_.Find(first);
  const uint64_t mask = recorder::SignalsBlockedBy(first);
  const SignalState signals =
      thread != nullptr ? threads_.StateOf(*thread).signals : SignalState();
  const bool blocks_all =
      (mask | kRaisedSignals) == (kAllSignals | kRaisedSignals);
  return signals.is_holding != 0 || signals.is_blocking != 0 || !blocks_all
             ? ProgramMask(signals, mask)
             : 0;
}

Status FreeRun::EndBySignal(Tid tid, Thread* thread, int signal) {
  CLEW_ASSIGN_OR_RETURN(info, process_.SignalInfo(tid));
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
    shared_.header().is_stopping.store(1);  // before it goes on
  }
  if (thread != nullptr) {
    CLEW_RETURN_IF_ERROR(HoldSignals(tid, threads_.StateOf(*thread)));
  }
  return process_.Continue(tid, 0);
}

// As the runtime does (runtime/signals.cc, Hold): more of them would keep the
// thread from ever stopping in the program.
Status FreeRun::HoldSignals(Tid tid, ThreadState& state) {
  SignalState& signals = state.signals;
  CLEW_ASSIGN_OR_RETURN(mask, process_.SignalMask(tid));
  if (signals.is_holding == 0 && signals.is_at_boundary == 0) {
    signals.held_mask = mask;
  }
  signals.is_holding = 1;
  return process_.SetSignalMask(tid, ~kRaisedSignals | mask);
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
  now.rip = state.signals.boundary;
  now.gs_base = 0;
  now.orig_rax = UINT64_MAX;
  CLEW_RETURN_IF_ERROR(process_.SetRegisters(tid, now));
  thread.stopped = Stopped::kAtSignal;
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
      OnExit(tid, thread);
      return {};
    case Parked::kExitGroup:
      EndByExit(thread);
      return {};
    case Parked::kExec:
      return OnExec(tid, thread);
    case Parked::kKill:
      OnKill(thread);
      return {};
    default:
      if (shared_.header().is_stopping.load() == 0) {  // it is too late
        stops_.Release(thread);
      } else {
        thread.stopped = Stopped::kParked;
      }
      return {};
  }
}

void FreeRun::OnExit(Tid tid, Thread& thread) {
  if (HasOthers(tid) && !state_.end) {
    thread.leaves = true;
    stops_.Release(thread);
  } else {
    EndByExit(thread);
  }
}

void FreeRun::EndByExit(Thread& thread) {
  const SyscallCall call = threads_.NoteCall(thread);
  thread.stopped = Stopped::kParked;
  if (!state_.end) {
    state_.EndByExit(*thread.native, call);
  }
}

void FreeRun::OnKill(Thread& thread) {
  const SyscallCall call = threads_.NoteCall(thread);
  if (!recorder::KillsItself(call, process_.process())) {
    thread.native->call.reset();
    stops_.Release(thread);
    return;
  }
  thread.stopped = Stopped::kParked;
  if (!state_.end) {
    state_.EndByKill(*thread.native);
  }
}

// It is made without the runtime, which is gone then.
Status FreeRun::OnExec(Tid tid, Thread& thread) {
  if (state_.end) {
    threads_.NoteCall(thread);
    thread.stopped = Stopped::kParked;
    return {};
  }
  CLEW_RETURN_IF_ERROR(stops_.Halt(tid, thread));
  ThreadState& state = threads_.StateOf(thread);
  const uint64_t mask = ProgramMask(state.signals, 0);
  CLEW_ASSIGN_OR_RETURN(parked, process_.Registers(tid));
  CLEW_RETURN_IF_ERROR(process_.SetRegisters(
      tid, ProgramRegisters(state, parked, state.signals.boundary)));
  CLEW_ASSIGN_OR_RETURN(stop, process_.Execute(tid));
  if (stop.kind == TraceeStop::Kind::kExec) {
    state_.replaced = true;
    if (halves_ != nullptr) {
      CLEW_RETURN_IF_ERROR(halves_->End(process_.first_thread()));
    }
    return process_.SetSignalMask(process_.first_thread(), mask);
  }
  if (stop.has_ended()) {
    return stops_.EndedFromOutside();
  }
  CLEW_ASSIGN_OR_RETURN(after, process_.Registers(tid));
  state.scratch = after.rax;
  CLEW_RETURN_IF_ERROR(process_.SetRegisters(tid, parked));
  CLEW_RETURN_IF_ERROR(process_.Continue(tid, stop.signal));
  stops_.Release(thread);
  return {};
}

// ---- The end ---------------------------------------------------------------

Status FreeRun::StopAll() {
  CLEW_ASSIGN_OR_RETURN(are_stopped, stops_.StopAll(true, kStopWithin));
  if (!are_stopped) {
    return Unsupported("the program's threads do not stop");
  }
  const uint64_t stopped_tsc = __rdtsc();
  uint64_t last = 0;
  for (auto& [tid, thread] : threads_.all()) {
    if (thread.stopped == Stopped::kParked) {
      CLEW_RETURN_IF_ERROR(stops_.Halt(tid, thread));
    } else if (thread.stopped == Stopped::kInCall) {
      thread.log->NoteInCall(stopped_tsc);
    }
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
  return SetMasks();
}

// What ends the program is the next to come to its thread: another signal would
// find a handler that is the runtime's. Threads that are to go on have their
// masks from here on: by those it is known whose calls a signal interrupts.
Status FreeRun::SetMasks() {
  const NativeEnd end = state_.end.value_or(NativeEnd());
  if (end.failure.kind == FailureKind::kHang ||
      end.failure.kind == FailureKind::kTimeLimit) {
    for (auto& [tid, thread] : threads_.all()) {
      if (thread.stopped != Stopped::kNot) {
        CLEW_ASSIGN_OR_RETURN(mask, process_.SignalMask(tid));
        CLEW_RETURN_IF_ERROR(process_.SetSignalMask(
            tid, ProgramMask(threads_.StateOf(thread).signals, mask)));
      }
    }
    return {};
  }
  const Tid tid = end.failure.thread;
  if (end.signal == 0 || end.signal == SIGKILL) {
    return process_.SetSignalMask(tid, kAllSignals);
  }
  CLEW_RETURN_IF_ERROR(process_.SetSignalMask(
      tid, kAllSignals & ~SignalBit(static_cast<uint64_t>(end.signal))));
  return ComeToSignal(tid, end.signal);
}

// The thread is about to receive it: the kernel takes a signal from a tracer
// then alone.
Status FreeRun::ComeToSignal(Tid tid, int signal) {
  const Thread* const thread = threads_.Find(tid);
  if (thread != nullptr && thread->stopped == Stopped::kAtSignal) {
    return {};
  }
  (void)syscall(SYS_tgkill, process_.process(), tid.as_int(), signal);
  for (;;) {
    CLEW_RETURN_IF_ERROR(process_.Continue(tid, 0));
    CLEW_ASSIGN_OR_RETURN(stop, process_.Wait(tid, true));
    if (stop.has_ended()) {
      return stops_.EndedFromOutside();
    }
    if (stop.kind == TraceeStop::Kind::kTrap ? !stop.is_without_signal
                                             : stop.signal == signal) {
      return {};
    }
  }
}

// The thread is stopped, and all it logged is read.
Status FreeRun::Settle(Thread& thread) {
  const Tid tid = thread.native->tid;
  const ThreadState& state = threads_.StateOf(thread);
  if (thread.stopped == Stopped::kInCall) {
    threads_.NoteCall(thread);
    CLEW_ASSIGN_OR_RETURN(now, process_.Registers(tid));
    user_regs_struct program = ProgramRegisters(state, now, thread.native->ip);
    // As the kernel left them.
    program.rax = now.rax;
    program.orig_rax = state.gpr[0];
    CLEW_RETURN_IF_ERROR(process_.SetRegisters(tid, program));
    thread.log->StopAt(thread.native->ip);
    return {};
  }
  if (thread.stopped != Stopped::kAtSignal) {
    CLEW_ASSIGN_OR_RETURN(now, process_.Registers(tid));
    CLEW_RETURN_IF_ERROR(process_.SetRegisters(
        tid, ProgramRegisters(state, now, state.signals.boundary)));
  }
  thread.log->StopAt(thread.native->call ? thread.native->ip
                                         : state.signals.boundary);
  return {};
}

// The threads of a process that shares the memory go on in the runtime: then it
// stays.
Status FreeRun::Leave(
    const std::vector<recorder::Attachment::Stopped>& threads) {
  for (const recorder::Attachment::Stopped& stopped : threads) {
    Thread* const thread = threads_.Find(stopped.tid);
    if (thread != nullptr) {
      CLEW_RETURN_IF_ERROR(LeaveRuntime(process_, stopped.tid, shared_,
                                        threads_.StateOf(*thread)));
    }
  }
  if (halves_ != nullptr) {
    CLEW_RETURN_IF_ERROR(halves_->End(threads.front().tid));
  }
  return threads_.HasChild()
             ? Status()
             : tracer::TakeOut(process_, threads.front().tid, shared_);
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
    recorder::NativeState& state, recorder::NativeProgram& program,
    uint64_t ring_bytes) {
  CLEW_ASSIGN_OR_RETURN(shared, SharedMemory::Create());
  auto run =
      std::make_unique<FreeRun>(state, program, std::move(shared), ring_bytes);
  CLEW_RETURN_IF_ERROR(run->Begin());
  return run;
}

}  // namespace clew::tracer
