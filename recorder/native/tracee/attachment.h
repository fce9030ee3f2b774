#ifndef CLEW_RECORDER_NATIVE_TRACEE_ATTACHMENT_H_
#define CLEW_RECORDER_NATIVE_TRACEE_ATTACHMENT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "common/os/ptrace.h"
#include "common/result.h"
#include "recorder/native/tracee/vdso_calls.h"
#include "recorder/qemu/guest_memory.h"

namespace clew::recorder {

// What is done to a process that runs, so that it can be recorded from here
// on, and undone when it is let go.
//
// - Each thread is brought to user mode: a call that the stop interrupted is
//   made once more, with its time limit from the beginning.
// - The functions of the vDSO make calls (VdsoCalls), so that what they read is
//   in the log of calls.
// - A critical section of rseq(2) is aborted, as by a preemption. With
//   RseqIs::kEnded none is registered any longer: then the kernel writes
//   nothing into its memory but by calls and signals.
class Attachment {
 public:
  struct Thread {
    Tid tid;
    uint64_t clear_tid_addr = 0;  // set_tid_address(2)
    TracedProcess::Rseq rseq;     // that it had
  };
  enum class RseqIs : uint8_t { kEnded, kKept };
  // REQUIRES: all threads are stopped. kUnsupported: the kernel lacks what is
  // needed (the message says what).
  [[nodiscard]] static Result<Attachment> Make(TracedProcess& process,
                                               const GuestMemory& memory,
                                               RseqIs rseq);

  // By number.
  const std::vector<Thread>& threads() const { return threads_; }
  uint64_t brk() const { return brk_; }
  bool uses_timers() const { return uses_timers_; }
  const VdsoCalls& vdso() const { return calls_; }
  // Of the struct rseq that the kernel goes on writing to; 0: none.
  uint64_t RseqAddr(const Thread& thread) const {
    return rseq_ == RseqIs::kKept ? thread.rseq.addr : 0;
  }

  // Whether some thread had it.
  bool has_rseq() const;
  // A thread registers rseq: it was made before attaching, or by a thread that
  // had decided on it then. Keeps that for Undo.
  void AddRseq(Tid thread, const TracedProcess::Rseq& rseq);

  struct Stopped {
    Tid tid;
    int signal = 0;  // that it is about to receive
  };
  // Undoes it. `stopped` are the threads that there are; those with a signal
  // keep what rseq is for them. REQUIRES: all are stopped, and where they make
  // their interrupted calls once more.
  [[nodiscard]] Status Undo(TracedProcess& process, const GuestMemory& memory,
                            const std::vector<Stopped>& stopped) const;
  // Undoes it where no thread is about to receive a signal. REQUIRES: as above.
  [[nodiscard]] Status Undo(TracedProcess& process,
                            const GuestMemory& memory) const;
  // Undoes it in a process that a thread has made just now, where it was
  // inherited. REQUIRES: `child`, its only thread, is traced and stopped.
  [[nodiscard]] Status UndoInChild(TracedProcess& process, Tid child,
                                   Tid parent) const;

 private:
  Attachment(VdsoCalls calls, RseqIs rseq)
      : calls_(std::move(calls)), rseq_(rseq) {}
  [[nodiscard]] Status Prepare(TracedProcess& process,
                               const GuestMemory& memory);
  [[nodiscard]] Status PrepareThread(TracedProcess& process, Tid tid,
                                     const GuestMemory& memory);
  [[nodiscard]] Status AbortSection(TracedProcess& process,
                                    const Thread& thread,
                                    const GuestMemory& memory) const;
  [[nodiscard]] Status EndRseq(TracedProcess& process,
                               const Thread& thread) const;
  // Registers for `tid` what `as` had registered.
  [[nodiscard]] Status BeginRseq(TracedProcess& process, Tid tid,
                                 const Thread& as) const;
  // Makes a call in a thread. Returns its result.
  [[nodiscard]] Result<int64_t> Call(TracedProcess& process, Tid thread,
                                     uint64_t number,
                                     const std::array<uint64_t, 6>& args) const;
  // Makes one that writes to its argument number `at`; returns what it wrote,
  // nullopt if it fails.
  template <class T>
  [[nodiscard]] Result<std::optional<T>> Ask(TracedProcess& process, Tid thread,
                                             const GuestMemory& memory,
                                             uint64_t number,
                                             std::array<uint64_t, 6> args,
                                             size_t at) const;

  VdsoCalls calls_;
  RseqIs rseq_;
  std::vector<Thread> threads_;
  uint64_t brk_ = 0;
  bool uses_timers_ = false;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_TRACEE_ATTACHMENT_H_
