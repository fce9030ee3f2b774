#include "recorder/native/sharing_process.h"

#include <asm/unistd_64.h>
#include <sched.h>
#include <signal.h>

#include <memory>
#include <utility>

namespace clew::recorder {
namespace {

using State = NativeThread::State;

Status LetGo(NativeState& state, NativeThread& thread) {
  if (thread.state == State::kBlocked) {
    CLEW_RETURN_IF_ERROR(StopSharing(state, thread));
  }
  if (state.leaps != nullptr) {
    CLEW_RETURN_IF_ERROR(state.leaps->Settle(thread.tid));
  }
  if (state.cpus != nullptr) {
    state.cpus->Release(thread.tid);
  }
  thread.is_let_go = true;
  return state.process.Detach(thread.tid, thread.signal);
}

}  // namespace

bool MakesSharingProcess(const SyscallCall& call, const GuestMemory& memory) {
  const uint64_t flags = call.number == __NR_clone ? call.args[0]
                         : call.number == __NR_clone3
                             ? memory.Load<uint64_t>(call.args[0]).value_or(0)
                             : 0;
  return call.number == __NR_vfork ||
         ((flags & CLONE_VM) != 0 && (flags & CLONE_THREAD) == 0);
}

Status BeginSharing(NativeState& state, NativeThread& thread) {
  auto memory = GuestMemory::OpenOf(thread.tid.as_int());
  if (!memory) {
    return std::unexpected(memory.error());
  }
  thread.other_process =
      std::make_unique<const GuestMemory>(*std::move(memory));
  state.process.AddSharing(thread.tid);
  return {};
}

// One that was not attached to is stopped by SIGSTOP, before which it may stop
// for another signal or at the end of its step.
Status StopSharing(NativeState& state, NativeThread& thread) {
  TracedProcess& process = state.process;
  CLEW_ASSIGN_OR_RETURN(stop, process.Interrupt(thread.tid));
  while (!process.is_attached() && stop.signal != SIGSTOP) {
    if (stop.has_ended()) {
      return Unsupported("process {} was ended from outside", thread.tid);
    }
    thread.signal = stop.signal != 0 ? stop.signal : thread.signal;
    CLEW_RETURN_IF_ERROR(process.Continue(thread.tid, 0));
    CLEW_ASSIGN_OR_RETURN(next, process.Wait(thread.tid, true));
    stop = next;
  }
  if (process.is_attached()) {
    thread.signal = stop.signal;
  }
  thread.state = State::kWaiting;
  return {};
}

Status LetExecutedGo(NativeState& state, NativeThread& thread) {
  if (state.cpus != nullptr) {
    state.cpus->Release(thread.tid);
  }
  return state.process.Detach(thread.tid, 0);
}

Status LetSharingGo(NativeState& state) {
  for (const auto& thread : state.threads) {
    if (thread->other_process != nullptr && !thread->is_let_go &&
        thread->state != State::kGone) {
      CLEW_RETURN_IF_ERROR(LetGo(state, *thread));
    }
  }
  return {};
}

}  // namespace clew::recorder
