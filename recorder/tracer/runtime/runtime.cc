#include "recorder/tracer/runtime/runtime.h"

#include <asm/prctl.h>
#include <cpuid.h>
#include <signal.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <span>

#include "common/linux/syscall_result.h"
#include "recorder/tracer/changed_code.h"
#include "recorder/tracer/runtime/call.h"
#include "recorder/tracer/runtime/executable.h"
#include "recorder/tracer/runtime/forget.h"
#include "recorder/tracer/runtime/inputs.h"
#include "recorder/tracer/runtime/leap.h"
#include "recorder/tracer/runtime/leave.h"
#include "recorder/tracer/runtime/log.h"
#include "recorder/tracer/runtime/park.h"
#include "recorder/tracer/runtime/signal_actions.h"
#include "recorder/tracer/runtime/signal_frame.h"
#include "recorder/tracer/runtime/signal_mask.h"
#include "recorder/tracer/runtime/signals.h"
#include "recorder/tracer/runtime/threads.h"
#include "recorder/tracer/runtime/translate.h"
#include "recorder/tracer/runtime/versions.h"

// The runtime in a traced process: what the entries of translated code
// (entries.S) come to.

namespace clew::tracer {
namespace {

constexpr int kEndedByRuntime = 70;

[[noreturn]] void End(SharedHeader& shared, Fault fault, uint64_t detail) {
  shared.fault_detail = detail;
  shared.fault.store(static_cast<uint32_t>(fault));
  for (;;) {
    Call(SYS_exit_group, kEndedByRuntime);
  }
}

bool HasBmi2() {
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 &&
         (ebx & bit_BMI2) != 0;
}

// What the program may not do, as the runtime would lose it.
bool IsRefused(uint64_t number, uint64_t first_argument) {
  return number == SYS_arch_prctl &&
         (first_argument == ARCH_SET_GS || first_argument == ARCH_GET_GS);
}

// Drops the code that a system call may have changed.
void DropChanged(Runtime& runtime, uint64_t number,
                 std::span<const uint64_t, 6> arguments) {
  for (const ChangedRange& range : ChangedBy(number, arguments)) {
    if (range.bytes != 0) {
      const Locked locked(runtime.lock);
      ForgetExecutable(runtime);
      Drop(runtime, range.addr, range.addr + range.bytes);
    }
  }
}

// If it is the process itself that the signal ends, it goes no further.
void ParkBeforeKill(ThreadState& thread, uint64_t signal) {
  if (signal == SIGKILL && Parks(thread)) {
    Park(thread, Parked::kKill, thread.last_call);
  }
}

// The kernel begins the time limit of a wait anew that was interrupted for
// nothing: one that is made once more is let have what is left of it. (Other
// calls the kernel goes on with itself.)
std::array<uint64_t, 6> WithLimitLeft(ThreadState& thread, uint64_t number,
                                      std::array<uint64_t, 6> arguments) {
  const auto limit_ms = static_cast<int32_t>(arguments[3]);
  if ((number != SYS_epoll_wait && number != SYS_epoll_pwait) ||
      limit_ms <= 0) {
    return arguments;
  }
  const Runtime& runtime = RuntimeOf(thread);
  const uint64_t now = LogTime(runtime);
  const uint64_t ticks_per_ms = runtime.shared->ticks_per_ms.load();
  uint64_t& began = thread.tell.wait_began;
  if (began == 0) {
    began = now;
  } else if (ticks_per_ms != 0) {
    const uint64_t waited_ms = (now - began) / ticks_per_ms;
    const auto limit = static_cast<uint64_t>(limit_ms);
    arguments[3] = limit - std::min(waited_ms, limit);
  }
  return arguments;
}

// Makes a system call of the program.
uint64_t Make(ThreadState& thread, uint64_t number,
              const std::array<uint64_t, 6>& arguments) {
  if (IsRefused(number, arguments[0])) {
    return static_cast<uint64_t>(-ENOSYS);
  }
  if (IsClone(number)) {
    return Clone(thread, number, arguments);
  }
  switch (number) {
    case SYS_rseq:
      // The kernel would look for the copies among the program's addresses.
      return RuntimeOf(thread).shared->answers_rseq != 0 && arguments[2] == 0
                 ? 0
                 : static_cast<uint64_t>(-ENOSYS);
    case SYS_rt_sigaction:
      return SetAction(thread, arguments);
    case SYS_sigaltstack:
      return SetAltStack(thread, arguments);
    case SYS_rt_sigreturn:
      return ReturnFromHandler(thread, arguments);
    case SYS_exit:
      EndThread(thread, number, arguments[0]);
      return kNotMade;
    case SYS_exit_group:
      if (Parks(thread)) {
        Park(thread, Parked::kExitGroup, thread.last_call);
      } else if (TellsInputs(thread)) {
        EndThread(thread, number, arguments[0]);
        return kNotMade;
      }
      Flush(thread);
      break;
    case SYS_execve:
    case SYS_execveat:
      if (Parks(thread)) {
        // A signal would find the program there, without the runtime.
        const SignalsBlocked blocked(thread);
        if (thread.signals.is_holding != 0) {
          return kNotMade;
        }
        // If the recorder lets it go on, it has made the call, which failed.
        if (Park(thread, Parked::kExec, thread.last_call)) {
          return thread.scratch;
        }
      }
      break;
    case SYS_kill:
    case SYS_tkill:
    case SYS_rt_sigqueueinfo:
      ParkBeforeKill(thread, arguments[1]);
      break;
    case SYS_tgkill:
      ParkBeforeKill(thread, arguments[2]);
      break;
    default:
      break;
  }
  thread.tell.is_interrupted = 0;
  thread.tell.is_in_call = 1;
  const uint64_t result =
      MakeCall(number, WithLimitLeft(thread, number, arguments));
  thread.tell.is_in_call = 0;
  // Where the process is traced, or the runtime has signals blocked, one that
  // is dropped otherwise wakes a thread that waits. A recorder that was killed
  // says no more which are not.
  const bool is_for_nothing =
      IsRecorded(thread) && result == static_cast<uint64_t>(-EINTR) &&
      thread.signals.is_holding == 0 && thread.tell.is_interrupted == 0;
  if (is_for_nothing) {
    return kNotMade;
  }
  thread.tell.wait_began = 0;
  return result;
}

// Likewise, in a thread that tells what comes in.
uint64_t MakeAndTell(ThreadState& thread, uint64_t number,
                     const std::array<uint64_t, 6>& arguments) {
  if (!TellsInputs(thread)) {
    LeaveProgram(thread);
    return Make(thread, number, arguments);
  }
  const ToldBefore before = BeforeCall(thread, number, arguments);
  Flush(thread, BatchEnd::kCalled, thread.last_call);
  LeaveProgram(thread);
  const uint64_t result = Make(thread, number, arguments);
  if (TellsInputs(thread)) {  // it is not the child of a fork
    TellCall(thread, before, result);
  }
  return result;
}

// A thread begins in the runtime, at the program's address in `resume`; its
// signals wait until then.
void Join(Runtime& runtime, uint32_t slot) {
  const ThreadState& told =
      runtime.Shared<ThreadSlot>(kThreadsAt + slot * kSlotBytes)->state;
  const uint64_t clear_tid = told.tell.clear_tid;
  ThreadState& thread = BeginThread(runtime, slot);
  Call(SYS_arch_prctl, ARCH_SET_GS, AddrOf(&thread));
  if (runtime.shared->in_leaps != 0) {
    EndLeap(thread);
  }
  thread.signals.actions = &runtime.actions;
  thread.tell.is_recorded = runtime.shared->tells_inputs;
  thread.tell.clear_tid = clear_tid;
  TakeOverAltStack(thread);
  BeginSignalStack(thread);
  const uint64_t addr = thread.resume;
  BeginProgram(thread);
  LetIn(thread, addr);
}

}  // namespace

void Stop(Runtime& runtime, Fault fault, uint64_t detail) {
  End(*runtime.shared, fault, detail);
}

void GoOn(ThreadState& thread, uint32_t fragment, uint64_t addr) {
  if (fragment == 0 && IsInLeaps(thread)) {
    EndLeapAt(thread, addr, true);
  }
  thread.resume =
      fragment == 0 ? addr : RuntimeOf(thread).translations[fragment].entry;
}

extern "C" {

// The first thread's registers are in its slot.
void tracer_on_start(SharedHeader* shared) {
  const Places& places = shared->places;
  auto& runtime = *reinterpret_cast<Runtime*>(places.runtime);
  runtime.shared = shared;
  runtime.has_bmi2 = HasBmi2();
  for (size_t i = 0; i < places.caches.size(); ++i) {
    if (places.caches[i] != 0) {
      BeginArena(runtime.arenas[i], places.caches[i]);
    }
  }
  if (shared->in_leaps == 0) {
    TakeOverActions(runtime);
  }
  Join(runtime, 0);
}

void tracer_on_join(SharedHeader* shared, uint64_t slot) {
  Join(*reinterpret_cast<Runtime*>(shared->places.runtime),
       static_cast<uint32_t>(slot));
}

void tracer_on_leave(ThreadState* thread) {
  GiveBack(*thread);
  EndLeap(*thread);
}

void tracer_on_exit(ThreadState* thread) {
  Runtime& runtime = RuntimeOf(*thread);
  const auto edge = static_cast<uint32_t>(thread->scratch);
  const uint64_t target = runtime.edge(edge).target;
  uint32_t fragment = 0;
  if (IsToForget(runtime)) {
    ForgetAt(*thread, target);
    return;
  }
  {
    const Locked locked(runtime.lock);
    fragment = FragmentAt(runtime, target);
    if (IsBehind(*thread)) {
      Flush(*thread, BatchEnd::kChanged, target);
      TakeVersion(*thread);
      BeginLog(*thread, fragment);
    }
    if (fragment != 0 &&
        IsTakenByAll(runtime, runtime.fragment(fragment).version)) {
      Link(runtime, edge, fragment);
    }
  }
  if (thread->leap.is_counted != 0 && fragment != 0) {
    CountFall(*thread, edge);
    return;
  }
  GoOn(*thread, fragment, target);
}

void tracer_on_miss(ThreadState* thread) {
  Runtime& runtime = RuntimeOf(*thread);
  const uint64_t target = thread->scratch;
  const bool is_to_forget = IsToForget(runtime);
  uint32_t fragment = 0;
  {
    const Locked locked(runtime.lock);
    fragment = FragmentAt(runtime, target);
    if (fragment != 0 && !is_to_forget) {
      const uint64_t entry = IndirectEntry(runtime, fragment);
      LookupFor(*thread, target) = {-target, entry};
      if (!IsBehind(*thread)) {
        thread->resume = entry;
        return;
      }
      Log(*thread, fragment);  // of what was before
      Flush(*thread);
      TakeVersion(*thread);
    }
  }
  if (fragment != 0 && is_to_forget) {
    Log(*thread, fragment);
    ForgetAt(*thread, target);
    return;
  }
  GoOn(*thread, fragment, target);
}

void tracer_on_full(ThreadState* thread) {
  const Runtime& runtime = RuntimeOf(*thread);
  if (thread->leap.is_counted != 0) {
    CountRecord(*thread);
    return;
  }
  const uint64_t addr = AddrOfLastRecord(*thread);
  if (IsInLeaps(*thread) && --thread->leap.batches_left == 0) {
    EndLeapAt(*thread, addr, false);
  }
  if (IsToPark(*thread) || IsForgetting(runtime)) {
    Flush(*thread, BatchEnd::kChanged, addr);
    ParkIfAsked(*thread, addr);
    BeginAt(*thread, addr);
  } else {
    Flush(*thread);
    TakeVersion(*thread);
  }
  LetIn(*thread, addr);
}

void tracer_on_stale(ThreadState* thread) {
  Runtime& runtime = RuntimeOf(*thread);
  const auto stale = static_cast<uint32_t>(thread->scratch);
  const uint64_t addr = runtime.fragment(stale).start;
  const bool is_counted = thread->leap.is_counted != 0;
  if (is_counted) {
    CountUpTo(*thread, stale);
  }
  {
    const Locked locked(runtime.lock);
    DropStale(runtime, stale);
  }
  if (is_counted) {
    GoOnChanged(*thread, addr);
    return;
  }
  Flush(*thread, BatchEnd::kChanged, addr);
  BeginAt(*thread, addr);
}

void tracer_on_cut(ThreadState* thread) {
  CountShortBlock(*thread, thread->scratch);
}

void tracer_on_step(ThreadState* thread) {
  EndLeapAt(*thread, *reinterpret_cast<const uint64_t*>(thread->scratch), true);
}

void tracer_on_interrupted(ThreadState* thread, uint64_t ip) {
  Runtime& runtime = RuntimeOf(*thread);
  std::optional<CopiedInsn> insn;
  {
    const Locked locked(runtime.lock);
    insn = InsnOfCopy(runtime, ip);
  }
  thread->scratch = insn && insn->saved != kNoRegister ? uint64_t{insn->saved}
                                                       : kNoSavedRegister;
  EndLeapAt(*thread, insn ? insn->addr : ip, true);
}

void tracer_on_changed(ThreadState* thread) {
  DropChanged(RuntimeOf(*thread), thread->gpr[0], ArgumentsOf(*thread));
  EndLeap(*thread);
}

void tracer_on_input(ThreadState* thread) {
  if (TellsInputs(*thread)) {
    // Behind what the entry comes from: mov rcx, address.
    TellInsn(*thread, *reinterpret_cast<uint64_t*>(thread->resume + 2));
  }
}

void tracer_on_call(ThreadState* thread) {
  Runtime& runtime = RuntimeOf(*thread);
  std::array<uint64_t, 16>& gpr = thread->gpr;
  // What the fragment loads to RCX behind the call: mov rcx, number.
  const uint64_t next = *reinterpret_cast<uint64_t*>(thread->resume + 2);
  thread->last_call = next - kSyscallBytes;
  if (IsInLeaps(*thread)) {
    EndLeapAt(*thread, thread->last_call, true);
  }
  const uint64_t number = gpr[0];
  const std::array<uint64_t, 6> arguments = ArgumentsOf(*thread);
  LetIn(*thread, thread->last_call);
  // As SYSCALL leaves them.
  gpr[1] = next;
  gpr[11] = thread->rflags;
  const bool begins_anew = EndsLogAtCalls(*thread);
  if (begins_anew && !TellsInputs(*thread)) {  // otherwise that ends it
    Flush(*thread, BatchEnd::kCalled, thread->last_call);
  }
  uint64_t result = kNotMade;
  while ((result = MakeAndTell(*thread, number, arguments)) == kNotMade) {
    ParkIfAsked(*thread, thread->last_call);
    LetIn(*thread, thread->last_call);
  }
  DropChanged(runtime, number, arguments);
  gpr[0] = result;
  ParkIfAsked(*thread, next);
  EnterProgram(*thread);
  if (begins_anew) {
    BeginAt(*thread, next);
  } else if (IsBehind(*thread)) {
    Flush(*thread, BatchEnd::kChanged, next);
    BeginAt(*thread, next);
  }
  LetInBehindCall(*thread, next, number, arguments);
}

}  // extern "C"

}  // namespace clew::tracer
