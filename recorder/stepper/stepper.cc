#include "recorder/stepper/stepper.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <unordered_map>

#include "common/os/ptrace.h"

namespace clew::recorder {
namespace {

// How long to leave the CPU to a program whose threads all sleep.
constexpr useconds_t kIdleMicroseconds = 50;

struct Thread {
  Tid tid;
  TraceeAddr ip;
  bool in_kernel = true;  // user mode is to be entered at ip
  int signal = 0;         // to deliver with the next step
};

class Stepper {
 public:
  Stepper(const StepperOptions& options, TracedProcess process,
          StepObserver& observer)
      : options_(options), process_(std::move(process)), observer_(observer) {}

  Result<SteppedRun> Run() {
    run_.process = process_.process();
    CLEW_RETURN_IF_ERROR(Adopt(process_.first_thread(), Tid(0)));
    observer_.OnMaps(process_.ProcText("maps"));
    while (!ready_.empty() || !asleep_.empty()) {
      CLEW_RETURN_IF_ERROR(ending_ ? ReapAll() : WakeSleepers());
      if (ready_.empty() && !asleep_.empty()) {
        usleep(kIdleMicroseconds);
      }
      if (!ready_.empty()) {
        const Thread thread = ready_.front();
        ready_.pop_front();
        CLEW_RETURN_IF_ERROR(RunQuantum(thread));
      }
    }
    return run_;
  }

 private:
  enum class After : uint8_t { kGoesOn, kAsleep, kGone };

  Status Adopt(Tid tid, Tid parent) {
    CLEW_ASSIGN_OR_RETURN(ip, process_.InsnPointer(tid));
    ready_.push_back({.tid = tid, .ip = ip});
    observer_.OnThread(tid, parent);
    return {};
  }

  Status WakeSleepers() {
    for (size_t i = 0; i < asleep_.size();) {
      // Whoever was woken is ready from now on, however long the kernel takes
      // to bring it to its stop: so runs are repeatable.
      CLEW_ASSIGN_OR_RETURN(stop, process_.WaitOrAsleep(asleep_[i].tid, 0));
      if (!stop) {
        ++i;
        continue;
      }
      Thread thread = asleep_[i];
      asleep_.erase(asleep_.begin() + static_cast<ptrdiff_t>(i));
      if (Ended(thread, *stop)) {
        continue;
      }
      thread.signal = stop->signal;
      CLEW_ASSIGN_OR_RETURN(ip, process_.InsnPointer(thread.tid));
      thread.ip = ip;
      ready_.push_back(thread);
    }
    return {};
  }

  // The process ends; its first thread can only be reaped after all others.
  Status ReapAll() {
    ready_.insert(ready_.end(), asleep_.begin(), asleep_.end());
    asleep_.clear();
    std::ranges::stable_partition(ready_, [this](const Thread& thread) {
      return thread.tid != process_.first_thread();
    });
    for (; !ready_.empty(); ready_.pop_front()) {
      for (bool ended = false; !ended;) {
        CLEW_ASSIGN_OR_RETURN(stop, process_.Wait(ready_.front().tid, true));
        ended = Ended(ready_.front(), stop);
      }
    }
    return {};
  }

  // Books the end of a thread or of the process.
  bool Ended(const Thread& thread, const TraceeStop& stop) {
    if (stop.kind == TraceeStop::Kind::kKilled) {
      if (run_.failure.kind == FailureKind::kSignal) {
        observer_.OnExit(thread.tid);
        return true;
      }
      run_.failure.kind = FailureKind::kSignal;
      run_.failure.signal = stop.signal;
      run_.failure.thread = thread.tid;
      run_.failure.ip = thread.ip;
    } else if (stop.kind != TraceeStop::Kind::kExited) {
      return false;
    } else if (thread.tid == process_.first_thread()) {
      run_.failure.exit_status = stop.exit_status;
    }
    observer_.OnExit(thread.tid);
    return true;
  }

  Status RunQuantum(Thread thread) {
    observer_.OnSwitchIn(thread.tid);
    After after = After::kGoesOn;
    for (uint32_t i = 0; i < options_.quantum_insns; ++i) {
      CLEW_ASSIGN_OR_RETURN(result, Step(thread));
      after = result;
      if (after != After::kGoesOn) {
        break;
      }
    }
    if (after == After::kGoesOn && !thread.in_kernel) {
      observer_.OnInterrupt(thread.ip);
      thread.in_kernel = true;
    }
    if (after != After::kGone) {
      observer_.OnSwitchOut(after == After::kGoesOn);
      (after == After::kAsleep ? asleep_ : ready_).push_back(thread);
    }
    return {};
  }

  // Executes one instruction, or delivers a signal.
  Result<After> Step(Thread& thread) {
    if (++run_.insns > options_.insns_max) {
      return LimitReached("the program has not ended after {} instructions",
                          options_.insns_max);
    }
    if (thread.signal != 0) {
      return DeliverSignal(thread);
    }
    if (thread.in_kernel) {
      observer_.OnKernelReturn(thread.ip);
      thread.in_kernel = false;
    }
    const SteppedInsn insn = Decode(thread.ip);
    return insn.branch_class == x86::BranchClass::kFar ? StepFar(thread, insn)
                                                       : StepNear(thread, insn);
  }

  // To the first instruction of the handler; if there is none, to the end.
  Result<After> DeliverSignal(Thread& thread) {
    --run_.insns;
    CLEW_RETURN_IF_ERROR(process_.SingleStep(thread.tid, thread.signal));
    thread.signal = 0;
    CLEW_ASSIGN_OR_RETURN(after, ArriveFromKernel(thread));
    ending_ = ending_ || after != After::kGoesOn;
    return after;
  }

  Result<After> StepFar(Thread& thread, const SteppedInsn& insn) {
    CLEW_ASSIGN_OR_RETURN(registers, process_.Registers(thread.tid));
    const bool may_map =
        registers.rax == SYS_mmap || registers.rax == SYS_mprotect;
    ending_ = ending_ || registers.rax == SYS_exit_group;
    observer_.OnFarTransfer(insn);
    thread.in_kernel = true;
    CLEW_RETURN_IF_ERROR(process_.SingleStep(thread.tid, 0));
    CLEW_ASSIGN_OR_RETURN(after, ArriveFromKernel(thread));
    if (may_map && after == After::kGoesOn) {
      observer_.OnMaps(process_.ProcText("maps"));
    }
    return after;
  }

  // After a step that began in the kernel.
  Result<After> ArriveFromKernel(Thread& thread) {
    CLEW_ASSIGN_OR_RETURN(
        stop,
        process_.WaitOrAsleep(thread.tid, TracedProcess::kLooksBeforeAsleep));
    if (!stop) {
      return After::kAsleep;
    }
    if (stop->kind == TraceeStop::Kind::kClone) {
      CLEW_RETURN_IF_ERROR(process_.Wait(stop->new_thread, true));
      CLEW_RETURN_IF_ERROR(Adopt(stop->new_thread, thread.tid));
      CLEW_RETURN_IF_ERROR(process_.SingleStep(thread.tid, 0));
      return ArriveFromKernel(thread);
    }
    if (stop->kind == TraceeStop::Kind::kFork) {
      CLEW_RETURN_IF_ERROR(process_.Wait(stop->new_thread, true));
      CLEW_RETURN_IF_ERROR(process_.LetGo(stop->new_thread));
      CLEW_RETURN_IF_ERROR(process_.SingleStep(thread.tid, 0));
      return ArriveFromKernel(thread);
    }
    if (Ended(thread, *stop)) {
      return After::kGone;
    }
    thread.signal = stop->signal;
    CLEW_ASSIGN_OR_RETURN(ip, process_.InsnPointer(thread.tid));
    thread.ip = ip;
    return After::kGoesOn;
  }

  Result<After> StepNear(Thread& thread, SteppedInsn insn) {
    const bool repeats = insn.branch_class == x86::BranchClass::kRepString;
    for (;;) {
      CLEW_RETURN_IF_ERROR(process_.SingleStep(thread.tid, 0));
      CLEW_ASSIGN_OR_RETURN(stop, process_.Wait(thread.tid, true));
      if (Ended(thread, stop)) {
        return After::kGone;
      }
      CLEW_ASSIGN_OR_RETURN(ip, process_.InsnPointer(thread.tid));
      if (stop.kind == TraceeStop::Kind::kSignal) {
        thread.signal = stop.signal;
        if (ip == thread.ip) {  // it did not retire
          --run_.insns;
          observer_.OnInterrupt(ip);
          thread.in_kernel = true;
          return After::kGoesOn;
        }
      }
      if (repeats && ip == thread.ip) {
        continue;  // the trap flag stops at each iteration
      }
      if (insn.branch_class == x86::BranchClass::kNone &&
          IsBehindAnother(insn, ip)) {
        insn = PassedOver(insn);
      }
      insn.next_ip = ip;
      observer_.OnInsn(insn);
      thread.ip = ip;
      if (thread.signal != 0) {
        observer_.OnInterrupt(ip);
        thread.in_kernel = true;
      }
      return After::kGoesOn;
    }
  }

  // Whether a thread at `ip` has executed more than `insn`, which is no branch.
  // The scanner knows 64-bit code: of 32-bit code it may take two instructions
  // for one, because 40 is no prefix there, or not know one at all.
  static bool IsBehindAnother(const SteppedInsn& insn, TraceeAddr ip) {
    const bool is_within = insn.ip < ip && ip < insn.fall_through;
    return ip != insn.fall_through && insn.fall_through != insn.ip &&
           !is_within;
  }

  // Where a hypervisor executes an instruction (CPUID) in the guest's place,
  // the trap may come one instruction late: no branch, and yet not where it
  // goes on. Reports the first of the two; returns the second, which was not
  // seen alone.
  SteppedInsn PassedOver(SteppedInsn first) {
    first.next_ip = first.fall_through;
    observer_.OnInsn(first);
    ++run_.insns;
    return Decode(first.fall_through);
  }

  // Code does not change under us: each address is read once.
  SteppedInsn Decode(TraceeAddr ip) {
    const auto known = decoded_.find(ip);
    if (known != decoded_.end()) {
      return known->second;
    }
    uint8_t bytes[x86::kInsnBytesMax] = {};
    const size_t got = process_.ReadMemory(ip, bytes);
    const std::span<const uint8_t> code = std::span(bytes).first(got);
    const size_t length = x86::ScanLayout(code).length;
    const x86::Branch branch = x86::ClassifyBranch(code.first(length));
    SteppedInsn insn;
    insn.ip = ip;
    insn.branch_class = branch.branch_class;
    insn.fall_through = TraceeAddr(ip.as_int() + length);
    insn.target = branch.DirectTarget(insn.fall_through);
    decoded_.emplace(ip, insn);
    return insn;
  }

  const StepperOptions& options_;
  TracedProcess process_;
  StepObserver& observer_;
  SteppedRun run_;
  bool ending_ =
      false;  // the process is being ended, threads die by themselves
  std::deque<Thread> ready_;
  std::deque<Thread> asleep_;
  std::unordered_map<TraceeAddr, SteppedInsn> decoded_;
};

}  // namespace

Result<SteppedRun> RunStepped(const StepperOptions& options,
                              StepObserver& observer) {
  if (options.quantum_insns == 0) {
    return InvalidArgument("stepper: quantum_insns is 0, wanted at least 1");
  }
  if (options.command.empty()) {
    return InvalidArgument("no program to trace");
  }
  CLEW_ASSIGN_OR_RETURN(
      process, TracedProcess::Start({.program = options.command[0],
                                     .arguments = options.command,
                                     .environment = options.environment,
                                     .host_cpu = options.host_cpu,
                                     .prepare = nullptr}));
  return Stepper(options, std::move(process), observer).Run();
}

}  // namespace clew::recorder
