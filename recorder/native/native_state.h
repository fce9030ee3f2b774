#ifndef CLEW_RECORDER_NATIVE_NATIVE_STATE_H_
#define CLEW_RECORDER_NATIVE_NATIVE_STATE_H_

#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/linux/deviations.h"
#include "common/os/ptrace.h"
#include "recorder/native/before_insn.h"
#include "recorder/native/child_taker.h"
#include "recorder/native/kernel_view.h"
#include "recorder/native/known_code.h"
#include "recorder/native/leaps.h"
#include "recorder/native/program_clock.h"
#include "recorder/native/program_cpus.h"
#include "recorder/native/shown_cpu.h"
#include "recorder/qemu/calls/file_mappings.h"
#include "recorder/qemu/calls/syscall_effects.h"
#include "recorder/qemu/calls/timed_wait.h"
#include "recorder/qemu/input_writer.h"
#include "recorder/qemu/plugin_config.h"
#include "recorder/qemu/size_limit.h"
#include "recorder/qemu/tracer.h"

namespace clew::recorder {

// Of RFLAGS: the CPU traps after each instruction. The stepper's, which the
// program is not to see.
inline constexpr uint64_t kTrapFlag = 0x100;

// For a process that has the program's memory.
struct VforkWait {
  Tid process;
  user_regs_struct registers = {};  // of who waits
};

// A thread of a program that is stepped.
struct NativeThread {
  enum class State : uint8_t {
    kWaiting,  // able to run, on no core
    kOnCore,
    kBlocked,  // asleep in the kernel
    kHeld,     // before a SYSCALL: NativeWaits
    kGone,
  };
  Tid tid;
  Tid parent;
  uint32_t slot = 0;  // Scheduler's
  State state = State::kWaiting;
  uint32_t core = 0;  // kOnCore
  uint64_t ip = 0;
  // Its trace is off: user mode is to be entered, at `ip`.
  bool in_kernel = true;
  EnableCause enable_cause = EnableCause::kSwitchIn;
  int signal = 0;           // to be delivered before it goes on; 0: none
  bool is_at_step = false;  // the next instruction is stepped: no leap
  // The call that it is in. In one that a signal interrupted until it is known
  // how that ends.
  std::optional<SyscallCall> call = {};
  uint64_t call_ip = 0;  // of the SYSCALL
  // It is of another process, which has the program's memory (vfork): that, by
  // its number. Null: it is one of the program's.
  std::unique_ptr<const GuestMemory> other_process = {};
  bool is_let_go = false;  // that process goes on unrecorded
  // Of vfork, which has memory of its own: that it waits for; 0: none.
  Tid vfork_child;
  // It waits in vfork for another process: nothing stops it there.
  std::optional<VforkWait> in_vfork = {};
  uint64_t clear_tid_addr = 0;
  KernelView kernel_view = {};
  // The wait with a time limit that it is held for or is in, and where it asks
  // for it.
  std::optional<TimedWait> wait = {};
  uint64_t wait_ip = 0;
  uint64_t wait_sp = 0;
  bool is_interrupted = false;  // by a signal; NativeWaits
  // When the call that it is in ends by the limit that the kernel keeps.
  std::optional<uint64_t> host_limit_ns = {};
  // When it began that call, by the program's clock and by the host's.
  uint64_t begun_ns = 0;
  uint64_t begun_host_ns = 0;
  std::unique_ptr<InputWriter> inputs = {};  // null: somebody else records them

  // As InputWriter::Add.
  template <class... What>
  void AddInput(const What&... what) {
    if (inputs != nullptr) {
      inputs->Add(what...);
    }
  }
  [[nodiscard]] Status CloseInputs() {
    return inputs == nullptr ? Status() : inputs->file().Close();
  }
};

// What came of a step.
enum class After : uint8_t {
  kGoesOn,
  kBlocked,  // it sleeps in the kernel
  kHeld,     // it is not to go on yet
  kGone,     // the thread has ended
  kEnded,    // the program ends: NativeState::end, or ::replaced
};

// How the program ends, and by what it is let end.
struct NativeEnd {
  Failure failure;
  // To be delivered to the failing thread; 0: it makes the call that it is at.
  int signal = 0;
  int code = 0;  // si_code of the signal
};

// Source: kernel/rseq.c, SYSCALL_DEFINE4(rseq).
inline bool RegistersRseq(const SyscallCall& call) {
  return call.number == __NR_rseq && call.args[2] == 0;
}

// What every part of a recording by stepping stands on.
struct NativeState {
  const PluginConfig& config;
  std::string folder;  // below which trace and inputs go now
  TracedProcess& process;
  GuestMemory memory;
  std::unique_ptr<SizeLimit> limit;
  std::unique_ptr<Tracer> tracer;
  KnownCode code;
  FileMappings files = {};
  std::vector<std::unique_ptr<NativeThread>> threads = {};  // by slot
  const ToldCpu& shown_cpu = ShownCpu();
  // CPUID, XGETBV and RDTSC tell the truth: of a program that was told already.
  bool shows_host_cpu = false;
  ProgramCpus* cpus = nullptr;     // may be null
  bool inputs_are_tapped = false;  // NativeHow's
  // A process that `parent` has made is about to be let go, and `child`, its
  // only thread, is stopped; may be null.
  std::function<Status(Tid child, Tid parent)> on_child = {};
  // Traces it no longer, then. Null: it goes on.
  ChildTaker take_child = {};
  // The program had it when it was attached to: a thread that registers
  // rseq(2) is told that it has, and `on_rseq` is called.
  bool has_rseq = false;
  std::function<void(Tid thread, const TracedProcess::Rseq& rseq)> on_rseq = {};
  // A signal would have stopped the program: returns when it goes on. May be
  // null.
  std::function<void(int signal)> on_stop = {};
  BeforeInsn before_insn = {};        // may be null
  std::unique_ptr<Leaps> leaps = {};  // null: each instruction is stepped
  // What the program's memory has of the recorder; the program does not know.
  std::vector<MemoryRange> hidden = {};
  // Whether to end the recording, asked each turn; may be null.
  std::function<bool()> is_over = {};
  uint64_t now = kFirstTick;  // the time, in instructions retired
  // What the program reads the time from; null: the host's clocks.
  std::unique_ptr<ProgramClock> clock = {};
  // How many those are, where they are not the time.
  std::optional<uint64_t> insns = {};
  bool uses_timers = false;
  uint64_t inputs_unknown = 0;  // calls of which not everything is known
  std::optional<NativeEnd> end = {};
  bool replaced = false;  // it runs another program: execve
  // What was carried out otherwise than by the kernel, each once.
  std::vector<std::string> deviations = {};

  // NoteUnlogged.
  std::vector<std::string> unlogged = {};
  bool has_reported = false;  // it put out that it fails

  // The program's memory, by the process of the thread, whose descriptors it
  // has.
  const GuestMemory& MemoryOf(const NativeThread& thread) const {
    return thread.other_process != nullptr ? *thread.other_process : memory;
  }
  // Lets a process go that a thread has made and that is as on_child has it.
  [[nodiscard]] Status LetChildGo(Tid child) {
    return take_child ? take_child(process, child) : process.LetGo(child);
  }
  uint64_t CountInsns() const { return insns.value_or(now - kFirstTick); }
  CoreEncoder& EncoderOf(const NativeThread& thread) {
    return tracer->encoder(thread.core);
  }
  bool HasOthers(const NativeThread& thread) const {
    for (const auto& other : threads) {
      if (other.get() != &thread &&
          other->state != NativeThread::State::kGone) {
        return true;
      }
    }
    return false;
  }
  // Makes the log of a thread's inputs, unless somebody else records them.
  [[nodiscard]] Status OpenInputs(NativeThread& thread) {
    if (inputs_are_tapped) {
      return {};
    }
    CLEW_ASSIGN_OR_RETURN(
        file, RawFile::Create(RawInputsPath(folder, thread.tid), limit.get()));
    thread.inputs =
        std::make_unique<InputWriter>(thread.tid, std::move(file), memory);
    return {};
  }
  // REQUIRES: has_rseq; RegistersRseq(call).
  void NoteRseq(const NativeThread& thread, const SyscallCall& call) const {
    on_rseq(thread.tid, {.addr = call.args[0],
                         .size_bytes = static_cast<uint32_t>(call.args[1]),
                         .signature = static_cast<uint32_t>(call.args[3])});
  }
  // `call` of `thread`, exit or exit_group, ends the program.
  void EndByExit(const NativeThread& thread, const SyscallCall& call) {
    Failure failure;
    failure.exit_status = ExitStatusOf(call);
    failure.thread = thread.tid;
    failure.ip = TraceeAddr(thread.ip);
    end = {.failure = failure};
  }
  // Likewise one that KillsItself.
  void EndByKill(const NativeThread& thread) {
    Failure failure;
    failure.kind = FailureKind::kSignal;
    failure.signal = SIGKILL;
    failure.thread = thread.tid;
    failure.ip = TraceeAddr(thread.ip);
    end = {.failure = failure};
  }
  // kUnsupported where there may be none (PluginConfig::strict).
  [[nodiscard]] Status NoteDeviation(const std::string& phrase) {
    if (config.strict) {
      return Unsupported("{}", StrictRefusal(phrase));
    }
    if (std::ranges::find(deviations, phrase) == deviations.end()) {
      deviations.push_back(phrase);
    }
    return {};
  }
  // Why the program may have read what is in no log, for people; each once.
  void NoteUnlogged(const std::string& phrase) {
    if (std::ranges::find(unlogged, phrase) == unlogged.end()) {
      unlogged.push_back(phrase);
    }
  }
  // Whoever looks at a thread now finds it as if it had been stepped.
  [[nodiscard]] Status Settle() const {
    for (const auto& thread : threads) {
      if (leaps != nullptr && thread->state != NativeThread::State::kGone) {
        CLEW_RETURN_IF_ERROR(leaps->Settle(thread->tid));
      }
    }
    return {};
  }
  // The recorder ends it.
  void EndAs(FailureKind kind) {
    Failure failure;
    failure.kind = kind;
    end = {.failure = failure};
  }
  // An interrupt comes before the instruction at thread.ip.
  void LeaveUserMode(NativeThread& thread) {
    EncoderOf(thread).AdvanceTime(TscTicks(now));
    EncoderOf(thread).Interrupt(TraceeAddr(thread.ip));
    thread.in_kernel = true;
    thread.enable_cause = EnableCause::kKernelReturn;
  }
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_NATIVE_STATE_H_
