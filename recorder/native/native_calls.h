#ifndef CLEW_RECORDER_NATIVE_NATIVE_CALLS_H_
#define CLEW_RECORDER_NATIVE_NATIVE_CALLS_H_

#include <functional>

#include "common/result.h"
#include "recorder/native/native_state.h"
#include "recorder/native/native_timers.h"
#include "recorder/native/native_waits.h"

namespace clew::recorder {

// A call that a thread is about to make.
struct ComingCall {
  SyscallCall call;
  user_regs_struct registers = {};
};

// The system calls of a program that is stepped: lets the kernel carry them out
// and records what they did.
//
// A call that the follower's machine does not know (rseq, clone3, io_uring,
// ...) is not made: the program is told ENOSYS, as by a kernel that lacks it.
// A process that vfork makes is a thread (sharing_process.h); where processes
// are recorded, too, it has memory of its own.
class NativeCalls {
 public:
  // Tells that `thread`, which clone has made, is able to run.
  using OnNewThread = std::function<void(NativeThread& thread)>;
  // References outlive this.
  NativeCalls(NativeState& state, NativeWaits& waits, OnNewThread on_new_thread)
      : state_(state),
        waits_(waits),
        timers_(state),
        on_new_thread_(std::move(on_new_thread)) {}

  // The call at thread.ip; nullopt: the thread is not to make it yet.
  [[nodiscard]] Result<std::optional<ComingCall>> Coming(NativeThread& thread);
  // Makes it. `insn` is its SYSCALL.
  [[nodiscard]] Result<After> Step(NativeThread& thread, const NativeInsn& insn,
                                   const ComingCall& coming);
  // Looks whether a thread that sleeps in a call does so still: kBlocked.
  [[nodiscard]] Result<After> Look(NativeThread& thread);
  // Likewise where nothing that the program did can have woken it: one that is
  // on its way to its stop is not waited for.
  [[nodiscard]] Result<After> LookOnce(NativeThread& thread);
  // Ends the call that `thread` is in with `result`: after a signal.
  [[nodiscard]] Status Finish(NativeThread& thread, int64_t result);
  // Ends the call so that it is made once more. REQUIRES: there is one.
  [[nodiscard]] Status MakeAgain(NativeThread& thread);

 private:
  [[nodiscard]] Result<After> Arrive(NativeThread& thread,
                                     const TraceeStop& stop);
  [[nodiscard]] Result<std::optional<After>> StepOut(NativeThread& thread,
                                                     const SyscallCall& call);
  // `parent` has made a process.
  [[nodiscard]] Status NoteProcess(NativeThread& parent, Tid child);
  [[nodiscard]] Result<After> NoteEnd(NativeThread& thread,
                                      const TraceeStop& stop);
  [[nodiscard]] bool IsInterruptedForNothing(const NativeThread& thread,
                                             int64_t result) const;
  [[nodiscard]] Status NoteVforkEnd(NativeThread& thread);
  [[nodiscard]] Result<After> ComeBefore(NativeThread& thread,
                                         user_regs_struct registers);
  [[nodiscard]] Result<After> Replace(NativeThread& thread);
  [[nodiscard]] Status Adopt(NativeThread& parent, Tid tid);
  [[nodiscard]] Status LetChildGo(const NativeThread& parent, Tid child);
  [[nodiscard]] Result<After> Leave(NativeThread& thread,
                                    const SyscallCall& call);
  [[nodiscard]] Status AwaitEnd(const NativeThread& thread);
  [[nodiscard]] Status LogEnd(NativeThread& thread,
                              std::vector<MemoryRange> writes);
  void NoteReport(const SyscallCall& call, int64_t result);
  [[nodiscard]] Status NoteMemoryFile(const SyscallCall& call, int64_t result);
  // Ends the call that `thread` is in.
  [[nodiscard]] Status Log(NativeThread& thread, int64_t result,
                           const SyscallEffects& effects);
  [[nodiscard]] Result<bool> BeginInTime(NativeThread& thread,
                                         const SyscallCall& call,
                                         const user_regs_struct& registers);
  [[nodiscard]] Result<int64_t> EndInTime(NativeThread& thread,
                                          const SyscallCall& call,
                                          int64_t result);
  [[nodiscard]] Result<bool> BeginInKernel(NativeThread& thread,
                                           const SyscallCall& call,
                                           const user_regs_struct& registers);
  // The call is not made.
  [[nodiscard]] Status Answer(NativeThread& thread, user_regs_struct registers,
                              int64_t result);
  void FollowUp(NativeThread& thread, const SyscallCall& call, int64_t result);

  NativeState& state_;
  NativeWaits& waits_;
  NativeTimers timers_;
  OnNewThread on_new_thread_;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_NATIVE_CALLS_H_
