#include "recorder/native/tracee/attachment.h"

#include <asm/unistd_64.h>
#include <linux/prctl.h>
#include <linux/rseq.h>
#include <sys/time.h>

#include <algorithm>

#include "common/linux/syscall_result.h"
#include "common/os/blocked_signals.h"
#include "recorder/native/tracee/interrupted_call.h"

namespace clew::recorder {
Result<Attachment> Attachment::Make(TracedProcess& process,
                                    const GuestMemory& memory, RseqIs rseq) {
  const std::vector<Tid> threads = process.Threads();
  for (const Tid thread : threads) {
    CLEW_RETURN_IF_ERROR(RewindInterruptedCall(process, thread, false));
  }
  BlockedSignals blocked(process);
  CLEW_RETURN_IF_ERROR(blocked.Block(threads));
  CLEW_ASSIGN_OR_RETURN(calls, VdsoCalls::Install(process, threads, memory));
  Attachment attachment(std::move(calls), rseq);
  const Status prepared = attachment.Prepare(process, memory);
  if (!prepared) {
    (void)attachment.calls_.Remove(process, threads, memory);
    return std::unexpected(prepared.error());
  }
  return attachment;
}

Status Attachment::Prepare(TracedProcess& process, const GuestMemory& memory) {
  for (const Tid thread : process.Threads()) {
    CLEW_RETURN_IF_ERROR(PrepareThread(process, thread, memory));
  }
  const Tid first = process.first_thread();
  CLEW_ASSIGN_OR_RETURN(brk, Call(process, first, __NR_brk, {}));
  brk_ = static_cast<uint64_t>(brk);
  uses_timers_ = !process.ProcText("timers").empty();
  for (const int which : {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF}) {
    CLEW_ASSIGN_OR_RETURN(timer,
                          Ask<itimerval>(process, first, memory, __NR_getitimer,
                                         {static_cast<uint64_t>(which)}, 1));
    uses_timers_ |=
        timer && (timer->it_value.tv_sec != 0 || timer->it_value.tv_usec != 0);
  }
  return {};
}

Status Attachment::PrepareThread(TracedProcess& process, Tid tid,
                                 const GuestMemory& memory) {
  CLEW_ASSIGN_OR_RETURN(rseq, process.RegisteredRseq(tid));
  Thread thread = {.tid = tid, .rseq = rseq};
  if (rseq.addr != 0) {
    CLEW_RETURN_IF_ERROR(AbortSection(process, thread, memory));
    if (rseq_ == RseqIs::kEnded) {
      CLEW_RETURN_IF_ERROR(EndRseq(process, thread));
    }
  }
  CLEW_ASSIGN_OR_RETURN(addr, Ask<uint64_t>(process, tid, memory, __NR_prctl,
                                            {PR_GET_TID_ADDRESS}, 1));
  if (!addr) {
    return Unsupported(
        "this kernel does not tell which word a thread clears when it ends "
        "(CONFIG_CHECKPOINT_RESTORE)");
  }
  thread.clear_tid_addr = *addr;
  threads_.push_back(thread);
  return {};
}

bool Attachment::has_rseq() const {
  return std::ranges::any_of(
      threads_, [](const Thread& each) { return each.rseq.addr != 0; });
}

void Attachment::AddRseq(Tid thread, const TracedProcess::Rseq& rseq) {
  const auto known = std::ranges::find(threads_, thread, &Thread::tid);
  if (known != threads_.end()) {
    known->rseq = rseq;
  } else {
    threads_.push_back({.tid = thread, .rseq = rseq});
  }
}

// The kernel would do so before the thread goes on, wherever that was, and set
// the word to zero. Source: linux/rseq.h; linux kernel/rseq.c, rseq_ip_fixup.
Status Attachment::AbortSection(TracedProcess& process, const Thread& thread,
                                const GuestMemory& memory) const {
  const uint64_t word = thread.rseq.addr + offsetof(struct rseq, rseq_cs);
  const uint64_t section_addr = memory.Load<uint64_t>(word).value_or(0);
  if (section_addr == 0) {
    return {};
  }
  const auto section = memory.Load<struct rseq_cs>(section_addr);
  CLEW_ASSIGN_OR_RETURN(registers, process.Registers(thread.tid));
  if (section &&
      registers.rip - section->start_ip < section->post_commit_offset) {
    registers.rip = section->abort_ip;
    CLEW_RETURN_IF_ERROR(process.SetRegisters(thread.tid, registers));
  }
  const uint64_t none = 0;
  (void)memory.Write(word, &none, sizeof(none));  // it was read
  return {};
}

Status Attachment::EndRseq(TracedProcess& process, const Thread& thread) const {
  const TracedProcess::Rseq& rseq = thread.rseq;
  CLEW_ASSIGN_OR_RETURN(result, Call(process, thread.tid, __NR_rseq,
                                     {rseq.addr, rseq.size_bytes,
                                      RSEQ_FLAG_UNREGISTER, rseq.signature}));
  return result == 0 ? Status()
                     : Unsupported("thread {}: rseq cannot be ended: error {}",
                                   thread.tid, -result);
}

Result<int64_t> Attachment::Call(TracedProcess& process, Tid thread,
                                 uint64_t number,
                                 const std::array<uint64_t, 6>& args) const {
  return process.MakeCall(thread, TraceeAddr(calls_.syscall_addr()), number,
                          args);
}

// Below the stack, behind what the thread may use there without moving its
// stack pointer (System V ABI, AMD64 supplement, "red zone").
template <class T>
Result<std::optional<T>> Attachment::Ask(TracedProcess& process, Tid thread,
                                         const GuestMemory& memory,
                                         uint64_t number,
                                         std::array<uint64_t, 6> args,
                                         size_t at) const {
  constexpr uint64_t kRedZoneBytes = 128;
  CLEW_ASSIGN_OR_RETURN(registers, process.Registers(thread));
  const uint64_t addr =
      (registers.rsp - kRedZoneBytes - sizeof(T)) / alignof(T) * alignof(T);
  const auto before = memory.Load<T>(addr);
  if (!before) {
    return Unsupported("thread {} has no stack at {:#x}", thread, addr);
  }
  args[at] = addr;
  CLEW_ASSIGN_OR_RETURN(result, Call(process, thread, number, args));
  const auto told = memory.Load<T>(addr);
  (void)memory.Write(addr, &*before, sizeof(T));
  return IsErrorResult(result) ? std::optional<T>() : told;
}

Status Attachment::Undo(TracedProcess& process, const GuestMemory& memory,
                        const std::vector<Stopped>& stopped) const {
  std::vector<Tid> all;
  all.reserve(stopped.size());
  for (const Stopped& thread : stopped) {
    all.push_back(thread.tid);
  }
  BlockedSignals blocked(process);
  CLEW_RETURN_IF_ERROR(blocked.Block(all));
  for (const Stopped& thread : stopped) {
    const auto known = std::ranges::find(threads_, thread.tid, &Thread::tid);
    if (known != threads_.end() && thread.signal == 0) {
      CLEW_RETURN_IF_ERROR(BeginRseq(process, thread.tid, *known));
    }
  }
  return calls_.Remove(process, all, memory);
}

Status Attachment::Undo(TracedProcess& process,
                        const GuestMemory& memory) const {
  std::vector<Stopped> stopped;
  for (const Tid thread : process.Threads()) {
    stopped.push_back({.tid = thread});
  }
  return Undo(process, memory, stopped);
}

Status Attachment::UndoInChild(TracedProcess& process, Tid child,
                               Tid parent) const {
  CLEW_ASSIGN_OR_RETURN(memory, GuestMemory::OpenOf(child.as_int()));
  BlockedSignals blocked(process);
  CLEW_RETURN_IF_ERROR(blocked.Block({child}));
  const auto known = std::ranges::find(threads_, parent, &Thread::tid);
  if (known != threads_.end()) {
    CLEW_RETURN_IF_ERROR(BeginRseq(process, child, *known));
  }
  return calls_.Remove(process, {child}, memory);
}

Status Attachment::BeginRseq(TracedProcess& process, Tid tid,
                             const Thread& as) const {
  const TracedProcess::Rseq& rseq = as.rseq;
  if (rseq.addr == 0 || rseq_ == RseqIs::kKept) {
    return {};
  }
  CLEW_RETURN_IF_ERROR(Call(process, tid, __NR_rseq,
                            {rseq.addr, rseq.size_bytes, 0, rseq.signature}));
  return {};
}

}  // namespace clew::recorder
