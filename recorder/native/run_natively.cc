#include "recorder/native/run_natively.h"

#include <elf.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "common/os/child_process.h"
#include "common/user_registers.h"
#include "recorder/native/native_run.h"
#include "recorder/native/native_state.h"
#include "recorder/native/shown_cpu.h"
#include "recorder/qemu/core_file.h"
#include "recorder/qemu/initial_stack.h"
#include "recorder/qemu/start_writer.h"

namespace clew::recorder {
namespace {

using State = NativeThread::State;

// Source: linux arch/x86/include/asm/segment.h, __USER_CS.
constexpr uint64_t kCodeOf64Bits = 0x33;

std::array<uint64_t, 16> GprsOf(const user_regs_struct& registers) {
  std::array<uint64_t, 16> gpr;
  for (size_t i = 0; i < gpr.size(); ++i) {
    gpr[i] = registers.*kUserGprs[i];
  }
  return gpr;
}

// Where the heap begins: the field start_brk of /proc/pid/stat, the 47th
// (proc(5)). The second one, the name, may hold anything, and ends with the
// last ')'.
Result<uint64_t> StartOfHeap(const std::string& text) {
  constexpr int kFieldsBetween = 44;
  size_t at = text.rfind(')');
  for (int i = 0; at != std::string::npos && i <= kFieldsBetween; ++i) {
    at = text.find(' ', at + 1);
  }
  unsigned long start = 0;
  if (at == std::string::npos ||
      sscanf(text.c_str() + at, " %lu", &start) != 1 || start == 0) {
    return Unsupported("the kernel tells no start of the program's heap: {:?}",
                       text);
  }
  return start;
}

// A program at its first instruction, and how it is described.
class NativeProgram {
 public:
  NativeProgram(NativeState& state, const PluginConfig& config)
      : state_(state), config_(config) {}

  // Hides the vDSO from the program, so that it asks the kernel for the time,
  // and writes start.pb.
  Status WriteStartState() {
    const Tid main = state_.process.first_thread();
    CLEW_ASSIGN_OR_RETURN(registers, state_.process.Registers(main));
    if (registers.cs != kCodeOf64Bits) {
      return Unsupported("the program's code is not of 64 bits");
    }
    stack_addr_ = registers.rsp;
    CLEW_RETURN_IF_ERROR(HideVdso());
    stack_ = ReadInitialStack(stack_addr_, state_.memory);
    CLEW_ASSIGN_OR_RETURN(brk, StartOfHeap(state_.process.ProcText("stat")));
    brk_ = brk;
    CLEW_ASSIGN_OR_RETURN(regions, Regions());
    state_.tracer->Comm(0, main, 0, true, stack_.ProgramName());
    for (const ExecMapping& mapping : CodeOfFiles(regions)) {
      state_.tracer->Mmap(0, main, 0, mapping);
      state_.code.Map(mapping);
    }
    StartState start;
    start.thread = main;
    start.gpr = GprsOf(registers);
    start.rip = TraceeAddr(registers.rip);
    start.rflags = registers.eflags & ~kTrapFlag;
    start.fs_base = registers.fs_base;
    start.gs_base = registers.gs_base;
    start.mxcsr_mask = x86::HostMxcsrMask();
    start.cpu_features = start.cpu_features.With(x86::HostFeatures());
    start.brk = TraceeAddr(brk_);
    return WriteStart(StartPath(config_.folder), start, regions, state_.memory);
  }

  // What a core dump says of it. REQUIRES: every thread is stopped.
  Status WriteCoreDump(const Failure& failure) {
    DumpedProcess dump;
    dump.process = state_.process.process();
    dump.program = stack_.ProgramName();
    dump.arguments = stack_.CommandLine();
    dump.auxv = stack_.AuxvBytes();
    dump.signal = failure.signal;
    dump.fault_addr = failure.addr.as_int();
    for (const auto& thread : state_.threads) {
      if (thread->state == State::kGone) {
        continue;
      }
      CLEW_ASSIGN_OR_RETURN(dumped, Dumped(*thread));
      const bool first = thread->tid == failure.thread;
      dump.threads.insert(first ? dump.threads.begin() : dump.threads.end(),
                          dumped);
    }
    CLEW_ASSIGN_OR_RETURN(regions, Regions());
    return WriteCore(CorePath(config_.folder), dump, regions, state_.memory);
  }

 private:
  Status HideVdso() {
    const InitialStack stack = ReadInitialStack(stack_addr_, state_.memory);
    const uint64_t ignored = AT_IGNORE;
    const auto at = stack.AddrOf(AT_SYSINFO_EHDR);
    if (at && !state_.memory.Write(*at, &ignored, sizeof(ignored))) {
      return Unsupported("the program's auxiliary vector cannot be written");
    }
    return {};
  }

  Result<std::vector<GuestRegion>> Regions() const {
    return ListRegionsOf(state_.process.process(), stack_addr_, brk_);
  }

  Result<DumpedThread> Dumped(const NativeThread& thread) const {
    CLEW_ASSIGN_OR_RETURN(registers, state_.process.Registers(thread.tid));
    if (thread.call && registers.rip == thread.call_ip) {
      // It has not been made yet, and will not return.
      registers.rip = thread.ip;
      registers.rcx = thread.ip;
      registers.r11 = registers.eflags & ~kTrapFlag;
    }
    return DumpedThread{.thread = thread.tid,
                        .gpr = GprsOf(registers),
                        .rip = registers.rip,
                        .rflags = registers.eflags & ~kTrapFlag,
                        .fs_base = registers.fs_base,
                        .gs_base = registers.gs_base};
  }

  NativeState& state_;
  const PluginConfig& config_;
  InitialStack stack_;
  uint64_t stack_addr_ = 0;
  uint64_t brk_ = 0;
};

// Ends the recording, then the program.
class NativeEnding {
 public:
  NativeEnding(NativeState& state, NativeProgram& program, const NativeEnd& end)
      : state_(state), program_(program), end_(end) {}

  Result<Outcome> Close(uint64_t handovers) {
    Failure& failure = end_.failure;
    if (failure.kind == FailureKind::kNone &&
        state_.config.fail_on.Matches(failure.exit_status)) {
      failure.kind = FailureKind::kExit;
    }
    Outcome outcome;
    outcome.failure = failure;
    outcome.insns = state_.now;
    outcome.handovers = handovers;
    outcome.switches = state_.tracer->switches();
    outcome.unlogged_inputs = state_.files.Unlogged();
    CLEW_RETURN_IF_ERROR(StopAll());
    if (failure.kind != FailureKind::kNone || state_.config.core_on_exit) {
      CLEW_RETURN_IF_ERROR(program_.WriteCoreDump(failure));
      outcome.has_core = true;
    }
    for (const auto& thread : state_.threads) {
      CLEW_RETURN_IF_ERROR(CloseThread(*thread));
    }
    outcome.inputs_unknown = unreadable_bytes_ > 0 ? 1 : 0;
    CLEW_RETURN_IF_ERROR(state_.tracer->Close());
    CLEW_RETURN_IF_ERROR(state_.code.Close());
    if (state_.limit->dropped()) {
      outcome.dropped = state_.limit->why();
    }
    return outcome;
  }

  // Returns the wait status.
  Result<int> LetEnd() {
    const Failure& failure = end_.failure;
    const Tid main = state_.process.first_thread();
    if (failure.kind == FailureKind::kHang ||
        failure.kind == FailureKind::kTimeLimit) {
      kill(state_.process.process(), SIGKILL);
    } else {
      CLEW_RETURN_IF_ERROR(
          state_.process.Continue(failure.thread, end_.signal));
    }
    for (const auto& thread : state_.threads) {
      if (thread->state != State::kGone && thread->tid != main) {
        CLEW_RETURN_IF_ERROR(AwaitEnd(thread->tid));
      }
    }
    CLEW_ASSIGN_OR_RETURN(last, AwaitEnd(main));
    return last.kind == TraceeStop::Kind::kKilled
               ? W_EXITCODE(0, last.signal)
               : W_EXITCODE(last.exit_status, 0);
  }

 private:
  Status StopAll() {
    for (const auto& thread : state_.threads) {
      if (thread->state == State::kBlocked) {
        CLEW_RETURN_IF_ERROR(state_.process.Interrupt(thread->tid));
      }
    }
    return {};
  }

  Status CloseThread(NativeThread& thread) {
    if (thread.state == State::kGone) {
      unreadable_bytes_ += thread.inputs->unreadable_bytes();
      return {};
    }
    if (thread.call) {
      thread.inputs->Add(InputOf(*thread.call), {});
    }
    if (thread.state == State::kOnCore) {
      const bool running = !thread.in_kernel;
      if (running) {
        state_.LeaveUserMode(thread);
      }
      state_.tracer->SwitchOut(thread.core, thread.tid, state_.now, running);
    }
    unreadable_bytes_ += thread.inputs->unreadable_bytes();
    return thread.inputs->file().Close();
  }

  Result<TraceeStop> AwaitEnd(Tid thread) {
    for (;;) {
      CLEW_ASSIGN_OR_RETURN(stop, state_.process.Wait(thread, true));
      if (stop.kind == TraceeStop::Kind::kExited ||
          stop.kind == TraceeStop::Kind::kKilled) {
        return stop;
      }
      CLEW_RETURN_IF_ERROR(state_.process.Continue(thread, stop.signal));
    }
  }

  NativeState& state_;
  NativeProgram& program_;
  NativeEnd end_;
  uint64_t unreadable_bytes_ = 0;
};

TraceeLaunch ToTraceeLaunch(const NativeLaunch& launch) {
  const bundle::Surroundings& around = launch.surroundings;
  return {.program = around.program,
          .arguments = launch.command,
          .environment = around.environment,
          .host_cpu = sched_getcpu(),
          .tell_traps = true,
          .prepare = [&launch, &around, parent = getpid()] {
            launch.enter_group();
            (void)SetLimit(RLIMIT_CORE, 0, 0);
            (void)SetLimit(RLIMIT_STACK, around.stack_limit_bytes,
                           RLIM_INFINITY);
            return chdir(around.working_directory.c_str()) == 0 &&
                   DieWithParent(parent);
          }};
}

// Records the program that `process` is at the first instruction of. Returns
// its wait status; nullopt: it has replaced itself by another, which is at its
// first instruction now. `uses_timers` is of the process, whatever it runs.
Result<std::optional<int>> RunProgram(const PluginConfig& config,
                                      TracedProcess& process,
                                      bool& uses_timers) {
  CLEW_ASSIGN_OR_RETURN(memory, GuestMemory::OpenOf(process.process()));
  auto limit = std::make_unique<SizeLimit>(config.size_limit_bytes);
  CLEW_ASSIGN_OR_RETURN(tracer, Tracer::Create(config, *limit));
  CLEW_ASSIGN_OR_RETURN(
      list, RawFile::Create(CodeListPath(config.folder), limit.get()));
  CLEW_ASSIGN_OR_RETURN(
      generated, RawFile::Create(RawCodePath(config.folder), limit.get()));
  NativeState state = {.config = config,
                       .process = process,
                       .memory = std::move(memory),
                       .limit = std::move(limit),
                       .tracer = std::move(tracer),
                       .code = KnownCode(std::move(list), std::move(generated)),
                       .uses_timers = uses_timers};
  NativeProgram program(state, config);
  CLEW_RETURN_IF_ERROR(program.WriteStartState());
  auto first = std::make_unique<NativeThread>();
  first->tid = process.first_thread();
  CLEW_ASSIGN_OR_RETURN(ip, process.InsnPointer(first->tid));
  first->ip = ip.as_int();
  state.threads.push_back(std::move(first));

  NativeRun run(state);
  CLEW_ASSIGN_OR_RETURN(end, run.Run());
  if (!end) {
    uses_timers = state.uses_timers;
    return std::nullopt;
  }
  NativeEnding ending(state, program, *end);
  CLEW_ASSIGN_OR_RETURN(outcome, ending.Close(run.handovers()));
  CLEW_ASSIGN_OR_RETURN(file, RawFile::Create(OutcomePath(config.folder)));
  file.Append(FormatOutcome(outcome));
  CLEW_RETURN_IF_ERROR(file.Close());
  CLEW_ASSIGN_OR_RETURN(status, ending.LetEnd());
  return status;
}

}  // namespace

Result<int> RunNatively(const NativeLaunch& launch) {
  CLEW_ASSIGN_OR_RETURN(process, TracedProcess::Start(ToTraceeLaunch(launch)));
  launch.started(process.process());
  bool uses_timers = false;
  for (;;) {
    CLEW_ASSIGN_OR_RETURN(status,
                          RunProgram(launch.config, process, uses_timers));
    if (status) {
      return *status;
    }
    CLEW_RETURN_IF_ERROR(RemoveRawInputs(launch.config.folder));
  }
}

}  // namespace clew::recorder
