#include "recorder/native/run_natively.h"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "common/os/child_process.h"
#include "recorder/native/native_program.h"
#include "recorder/native/native_run.h"
#include "recorder/native/native_state.h"
#include "recorder/native/program_cpus.h"
#include "recorder/native/sharing_process.h"
#include "recorder/native/tracee/attachment.h"
#include "recorder/native/tracee/interrupted_call.h"
#include "recorder/native/tracee/signal_disposition.h"

namespace clew::recorder {
namespace {

using State = NativeThread::State;

// Nothing stops a thread in vfork before the process that it has made has ended
// or runs another program.
Status StopInVfork(NativeState& state, NativeThread& thread) {
  constexpr useconds_t kLookEveryUs = 1000;
  constexpr int kLooks = 10'000;
  for (int look = 0; look < kLooks; ++look) {
    CLEW_ASSIGN_OR_RETURN(stop, state.process.Wait(thread.tid, false));
    if (stop.kind != TraceeStop::Kind::kRunning) {
      thread.in_vfork.reset();
      thread.state = State::kWaiting;
      return {};
    }
    usleep(kLookEveryUs);
  }
  return Unsupported(
      "thread {} cannot be let go: it waits for a process that it has made by "
      "{}, which neither ends nor runs another program",
      thread.tid, SyscallName(thread.call.value_or(SyscallCall()).number));
}

// Stops the threads that sleep, but in vfork.
Status StopBlocked(NativeState& state) {
  for (const auto& thread : state.threads) {
    if (thread->state != State::kBlocked || thread->in_vfork) {
      continue;
    }
    if (thread->other_process != nullptr) {
      CLEW_RETURN_IF_ERROR(StopSharing(state, *thread));
    } else {
      CLEW_ASSIGN_OR_RETURN(stop, state.process.Interrupt(thread->tid));
      thread->signal = state.process.is_attached() ? stop.signal : 0;
      thread->state = State::kWaiting;
    }
  }
  return {};
}

bool IsCutOff(const Failure& failure) {
  return failure.kind == FailureKind::kHang ||
         failure.kind == FailureKind::kTimeLimit;
}

// Ends the recording, then the program.
class NativeEnding {
 public:
  NativeEnding(NativeState& state, NativeProgram& program, const NativeEnd& end)
      : state_(state), program_(program), end_(end) {}

  Result<Outcome> Close(ProgramRun& run) {
    Failure& failure = end_.failure;
    if (failure.kind == FailureKind::kNone &&
        state_.config.fail_on.Matches(failure.exit_status,
                                      state_.has_reported)) {
      failure.kind = FailureKind::kExit;
    }
    Outcome outcome;
    outcome.ended_ns = static_cast<uint64_t>(
        std::chrono::steady_clock::now().time_since_epoch() /
        std::chrono::nanoseconds(1));
    outcome.failure = failure;
    outcome.insns = state_.CountInsns();
    outcome.cores = state_.tracer->core_count();
    outcome.handovers = run.handovers();
    outcome.switches = state_.tracer->switches();
    outcome.unlogged_inputs = state_.files.Unlogged();
    outcome.unlogged_inputs.insert(outcome.unlogged_inputs.end(),
                                   state_.unlogged.begin(),
                                   state_.unlogged.end());
    outcome.deviations = state_.deviations;
    CLEW_RETURN_IF_ERROR(StopBlocked(state_));
    if (failure.kind != FailureKind::kNone || state_.config.core_on_exit) {
      CLEW_RETURN_IF_ERROR(program_.WriteCoreDump(end_));
      outcome.has_core = true;
    }
    for (const auto& thread : state_.threads) {
      CLEW_RETURN_IF_ERROR(CloseThread(*thread));
    }
    CLEW_RETURN_IF_ERROR(LetSharingGo(state_));
    outcome.inputs_unknown =
        state_.inputs_unknown + (unreadable_bytes_ > 0 ? 1 : 0);
    if (state_.limit->dropped()) {
      CLEW_RETURN_IF_ERROR(program_.NameWhatIsThere());
    }
    CLEW_RETURN_IF_ERROR(state_.tracer->Close());
    CLEW_RETURN_IF_ERROR(state_.code.Close());
    CLEW_RETURN_IF_ERROR(run.Finish(outcome));
    if (state_.limit->dropped()) {
      outcome.dropped = state_.limit->why();
    }
    return outcome;
  }

  // Returns the wait status.
  Result<int> LetEnd() {
    const Failure& failure = end_.failure;
    const Tid main = state_.process.first_thread();
    if (IsCutOff(failure)) {
      kill(state_.process.process(), SIGKILL);
    } else {
      CLEW_RETURN_IF_ERROR(
          state_.process.Continue(failure.thread, end_.signal));
    }
    for (const auto& thread : state_.threads) {
      if (thread->state != State::kGone && thread->tid != main &&
          thread->other_process == nullptr) {
        CLEW_RETURN_IF_ERROR(AwaitEndOf(thread->tid));
      }
    }
    CLEW_ASSIGN_OR_RETURN(last, AwaitEnd(main));
    return last.kind == TraceeStop::Kind::kKilled
               ? W_EXITCODE(0, last.signal)
               : W_EXITCODE(last.exit_status, 0);
  }

 private:
  Status CloseThread(NativeThread& thread) {
    if (thread.state == State::kGone) {
      NoteUnreadable(thread);
      return {};
    }
    if (thread.call) {
      SyscallInput input = InputOf(*thread.call);
      if (thread.in_vfork) {
        input.result = thread.in_vfork->process.as_int();  // which has begun
      }
      thread.AddInput(input, std::vector<MemoryRange>());
    }
    if (thread.state == State::kOnCore) {
      const bool running = !thread.in_kernel;
      if (running) {
        state_.LeaveUserMode(thread);
      }
      state_.tracer->SwitchOut(thread.core, thread.tid, state_.now, running);
    }
    NoteUnreadable(thread);
    return thread.CloseInputs();
  }

  void NoteUnreadable(const NativeThread& thread) {
    if (thread.inputs != nullptr) {
      unreadable_bytes_ += thread.inputs->unreadable_bytes();
    }
  }

  // Of another thread than the first, by what the failing one does: which may
  // stop for a signal before.
  Status AwaitEndOf(Tid thread) {
    constexpr useconds_t kLookEveryUs = 50;
    const Tid failing = end_.failure.thread;
    for (;;) {
      CLEW_ASSIGN_OR_RETURN(ended, GoesOnToEnd(thread));
      if (ended) {
        return {};
      }
      if (failing != thread && failing != Tid(0) && !IsCutOff(end_.failure)) {
        CLEW_RETURN_IF_ERROR(GoesOnToEnd(failing));
      }
      usleep(kLookEveryUs);
    }
  }

  // Whether it has ended; if it has stopped it goes on.
  Result<bool> GoesOnToEnd(Tid thread) {
    if (ended_.contains(thread)) {
      return true;
    }
    CLEW_ASSIGN_OR_RETURN(stop, state_.process.Wait(thread, false));
    if (stop.has_ended()) {
      ended_.insert(thread);
      return true;
    }
    if (stop.kind != TraceeStop::Kind::kRunning) {
      CLEW_RETURN_IF_ERROR(state_.process.Continue(thread, stop.signal));
    }
    return false;
  }

  Result<TraceeStop> AwaitEnd(Tid thread) {
    for (;;) {
      CLEW_ASSIGN_OR_RETURN(stop, state_.process.Wait(thread, true));
      if (stop.has_ended()) {
        return stop;
      }
      CLEW_RETURN_IF_ERROR(state_.process.Continue(thread, stop.signal));
    }
  }

  NativeState& state_;
  NativeProgram& program_;
  NativeEnd end_;
  uint64_t unreadable_bytes_ = 0;
  std::set<Tid> ended_;  // LetEnd
};

TraceeLaunch ToTraceeLaunch(const NativeLaunch& launch) {
  const bundle::Surroundings& around = launch.surroundings;
  return {
      .program = around.program,
      .arguments = launch.command,
      .environment = around.environment,
      .host_cpu =
          launch.how.make_run ? std::nullopt : std::optional(sched_getcpu()),
      .tell_traps = true,
      .prepare = [&launch, &around, parent = getpid()] {
        launch.enter_group();
        (void)SetLimit(RLIMIT_CORE, 0, 0);
        (void)SetLimit(RLIMIT_STACK, around.stack_limit_bytes, RLIM_INFINITY);
        return chdir(around.working_directory.c_str()) == 0 &&
               DieWithParent(parent);
      }};
}

// A process that is recorded, whatever programs it runs one after another.
struct Recorded {
  const NativeHow& how;
  TracedProcess process;
  std::function<bool()> is_over = {};
  std::function<void(int)> on_stop = {};
  std::function<void(const std::vector<std::string>&)> executed = {};
  // Called once the start state of the attached program is written; may be
  // null.
  std::function<void()> begun = {};
  std::function<Status()> ended = {};  // NativeAttach's
  bool uses_timers = false;
  // Of the program that it runs; nullopt: that is recorded from its start.
  std::optional<Attachment> attachment = {};
  // Whatever programs it runs; nullopt: it runs on the host's.
  std::optional<ProgramCpus> cpus = {};
};

// The process goes on unrecorded.
Status LetGo(NativeState& state, Recorded& recorded, ProgramRun& run) {
  CLEW_RETURN_IF_ERROR(StopBlocked(state));
  CLEW_RETURN_IF_ERROR(LetSharingGo(state));
  for (const auto& thread : state.threads) {
    if (thread->in_vfork && thread->state != State::kGone) {
      CLEW_RETURN_IF_ERROR(StopInVfork(state, *thread));
    }
  }
  CLEW_RETURN_IF_ERROR(state.Settle());
  std::vector<Attachment::Stopped> stopped;
  for (const auto& thread : state.threads) {
    if (thread->state != State::kGone && thread->other_process == nullptr) {
      stopped.push_back({.tid = thread->tid, .signal = thread->signal});
      if (thread->signal == 0 ||
          IsDropped(state.process, thread->tid, thread->signal)) {
        CLEW_RETURN_IF_ERROR(
            RewindInterruptedCall(state.process, thread->tid, true));
      }
    }
  }
  if (recorded.attachment) {
    CLEW_RETURN_IF_ERROR(
        recorded.attachment->Undo(state.process, state.memory, stopped));
  }
  CLEW_RETURN_IF_ERROR(run.Leave(stopped));
  for (const Attachment::Stopped& thread : stopped) {
    if (recorded.cpus) {
      recorded.cpus->Release(thread.tid);
    }
    CLEW_RETURN_IF_ERROR(state.process.Detach(thread.tid, thread.signal));
  }
  return {};
}

// Undoes what was done to a process that was attached to, if it still runs what
// it did then. REQUIRES: no instruction was stepped.
void GiveBack(Recorded& recorded) {
  if (!recorded.attachment) {
    return;
  }
  const auto memory = GuestMemory::OpenOf(recorded.process.process());
  if (memory) {  // otherwise it has ended
    (void)recorded.attachment->Undo(recorded.process, *memory);
  }
  for (const Tid thread : recorded.process.Threads()) {
    if (recorded.cpus) {
      recorded.cpus->Release(thread);
    }
  }
}

// A process that was made while it is recorded runs as if nobody recorded.
Status FreeChild(Recorded& recorded, Tid child, Tid parent) {
  if (recorded.cpus) {
    recorded.cpus->Inherit(parent, child);
    recorded.cpus->Release(child);
  }
  return recorded.attachment
             ? recorded.attachment->UndoInChild(recorded.process, child, parent)
             : Status();
}

Result<NativeState> MakeState(Recorded& recorded) {
  const PluginConfig& config = recorded.how.config;
  CLEW_ASSIGN_OR_RETURN(memory,
                        GuestMemory::OpenOf(recorded.process.process()));
  if (recorded.how.files != nullptr) {
    recorded.how.files->Clear();
  }
  auto limit = std::make_unique<SizeLimit>(config.size_limit_bytes);
  CLEW_ASSIGN_OR_RETURN(tracer, Tracer::Create(config, *limit));
  CLEW_ASSIGN_OR_RETURN(
      list, RawFile::Create(CodeListPath(config.folder), limit.get()));
  CLEW_ASSIGN_OR_RETURN(
      generated, RawFile::Create(RawCodePath(config.folder), limit.get()));
  // Who records what the kernel answers has the times that the kernel tells; a
  // process that runs already has read them; and where threads run at once,
  // time passes as it does.
  const bool reads_host_clock = recorded.attachment.has_value() ||
                                recorded.how.inputs_are_tapped ||
                                recorded.how.make_run;
  return NativeState{
      .config = config,
      .folder = config.folder,
      .process = recorded.process,
      .memory = std::move(memory),
      .limit = std::move(limit),
      .tracer = std::move(tracer),
      .code =
          KnownCode(std::move(list), std::move(generated), recorded.how.files),
      .shows_host_cpu = recorded.attachment.has_value(),
      .cpus = recorded.cpus ? &*recorded.cpus : nullptr,
      .inputs_are_tapped = recorded.how.inputs_are_tapped,
      .on_child =
          [&recorded](Tid child, Tid parent) {
            return FreeChild(recorded, child, parent);
          },
      .take_child = recorded.how.take_child,
      .has_rseq = recorded.attachment && recorded.attachment->has_rseq(),
      .on_rseq =
          [&recorded](Tid thread, const TracedProcess::Rseq& rseq) {
            recorded.attachment->AddRseq(thread, rseq);
          },
      .on_stop = recorded.on_stop,
      .before_insn = recorded.how.before_insn,
      .is_over = recorded.is_over,
      .clock = reads_host_clock
                   ? nullptr
                   : std::make_unique<ProgramClock>(config.scheduler.seed),
      .uses_timers = recorded.uses_timers};
}

Result<std::unique_ptr<ProgramRun>> MakeRun(Recorded& recorded,
                                            NativeState& state,
                                            NativeProgram& program) {
  if (recorded.how.make_run) {
    return recorded.how.make_run(state, program);
  }
  if (recorded.how.make_leaps) {
    CLEW_ASSIGN_OR_RETURN(leaps, recorded.how.make_leaps(recorded.process));
    state.leaps = std::move(leaps);
    state.hidden = state.leaps->Memory();
  }
  return std::make_unique<NativeRun>(state);
}

// Records the program that the process is at the first instruction of, or was
// attached to in. Returns its wait status, 0 if it was let go; nullopt: it has
// replaced itself by another, which is at its first instruction now.
Result<std::optional<int>> RunProgram(Recorded& recorded) {
  auto made = MakeState(recorded);
  if (!made) {
    GiveBack(recorded);
    return std::unexpected(made.error());
  }
  NativeState& state = *made;
  NativeProgram program(state);
  const Status begins = recorded.attachment
                            ? program.Begin(*recorded.attachment)
                            : program.Begin();
  if (!begins) {
    GiveBack(recorded);
    return std::unexpected(begins.error());
  }
  if (recorded.attachment && recorded.begun) {
    recorded.begun();
  }
  if (!recorded.attachment && recorded.executed) {
    recorded.executed(program.arguments());
  }
  auto run = MakeRun(recorded, state, program);
  if (!run) {
    GiveBack(recorded);
    return std::unexpected(run.error());
  }
  const auto end = (*run)->Run();
  if (!end) {
    if (recorded.attachment) {
      (void)LetGo(state, recorded, **run);  // why it failed is told
    }
    return std::unexpected(end.error());
  }
  recorded.uses_timers = state.uses_timers;
  const std::optional<NativeEnd>& ended = *end;
  if (!ended) {
    return std::nullopt;
  }
  NativeEnding ending(state, program, *ended);
  CLEW_ASSIGN_OR_RETURN(outcome, ending.Close(**run));
  CLEW_ASSIGN_OR_RETURN(
      file, RawFile::Create(OutcomePath(recorded.how.config.folder)));
  file.Append(FormatOutcome(outcome));
  CLEW_RETURN_IF_ERROR(file.Close());
  if (recorded.process.is_attached() && IsCutOff(outcome.failure)) {
    const Status over = recorded.ended();
    CLEW_RETURN_IF_ERROR(LetGo(state, recorded, **run));
    CLEW_RETURN_IF_ERROR(over);
    return 0;
  }
  CLEW_ASSIGN_OR_RETURN(status, ending.LetEnd());
  return status;
}

Result<int> RunPrograms(Recorded& recorded) {
  for (;;) {
    CLEW_ASSIGN_OR_RETURN(status, RunProgram(recorded));
    if (status) {
      return *status;
    }
    if (recorded.how.inputs_are_tapped) {
      return Unsupported(
          "the program replaced itself by another, and the log of inputs began "
          "with the first; record the other, or without --inputs");
    }
    recorded.attachment.reset();
    CLEW_RETURN_IF_ERROR(RemoveRawInputs(recorded.how.config.folder));
  }
}

}  // namespace

Result<int> RunNatively(const NativeLaunch& launch) {
  auto cpus = ProgramCpus::OfLaunched(launch.how.config.scheduler.cores);
  CLEW_ASSIGN_OR_RETURN(process, TracedProcess::Start(ToTraceeLaunch(launch)));
  cpus.Inherit(Tid(0), process.first_thread());
  CLEW_RETURN_IF_ERROR(launch.started(process.process()));
  Recorded recorded = {.how = launch.how,
                       .process = std::move(process),
                       .on_stop = launch.on_stop};
  if (!launch.how.make_run) {
    recorded.cpus = std::move(cpus);
  }
  return RunPrograms(recorded);
}

Result<int> RunAttached(const NativeAttach& attach) {
  CLEW_ASSIGN_OR_RETURN(
      process, attach.handed_over ? TracedProcess::TakeOver(*attach.handed_over)
                                  : TracedProcess::Attach(attach.process));
  Recorded recorded = {.how = attach.how,
                       .process = std::move(process),
                       .is_over = attach.is_over,
                       .executed = attach.executed,
                       .begun = attach.begun,
                       .ended = attach.ended};
  CLEW_ASSIGN_OR_RETURN(memory, GuestMemory::OpenOf(attach.process));
  CLEW_ASSIGN_OR_RETURN(attachment,
                        Attachment::Make(recorded.process, memory,
                                         attach.how.inputs_are_tapped
                                             ? Attachment::RseqIs::kKept
                                             : Attachment::RseqIs::kEnded));
  recorded.uses_timers = attachment.uses_timers();
  recorded.attachment = std::move(attachment);
  if (!attach.how.make_run) {
    recorded.cpus = ProgramCpus::OfAttached(recorded.process.Threads());
  }
  const Status may_go_on = attach.stopped();
  if (!may_go_on) {
    GiveBack(recorded);
    return std::unexpected(may_go_on.error());
  }
  return RunPrograms(recorded);
}

}  // namespace clew::recorder
