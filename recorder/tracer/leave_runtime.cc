#include "recorder/tracer/leave_runtime.h"

#include <unistd.h>

#include "common/user_registers.h"
#include "recorder/tracer/inject.h"

namespace clew::tracer {
namespace {

// nullptr: it has not begun, or is not parked.
ThreadSlot* FindParked(SharedMemory& shared, Tid tid) {
  for (uint32_t number = 0; number < shared.slot_count(); ++number) {
    ThreadSlot& slot = shared.slot(number);
    if (slot.use.load() == SlotUse::kThread && SharedMemory::IsParked(slot) &&
        Tid(slot.tid) == tid) {
      return &slot;
    }
  }
  return nullptr;
}

// Waits until a process that runs is parked, and stops it there. Returns its
// slot; nullptr: it has ended.
Result<ThreadSlot*> WaitForParked(TracedProcess& process, Tid child,
                                  SharedMemory& shared) {
  constexpr useconds_t kLookEveryUs = 50;
  ThreadSlot* slot = nullptr;
  while ((slot = FindParked(shared, child)) == nullptr) {
    CLEW_ASSIGN_OR_RETURN(stop, process.Wait(child, false));
    if (stop.has_ended()) {
      return nullptr;
    }
    if (stop.kind == TraceeStop::Kind::kRunning) {
      usleep(kLookEveryUs);
    } else {
      CLEW_RETURN_IF_ERROR(process.Continue(child, 0));
    }
  }
  for (;;) {
    CLEW_ASSIGN_OR_RETURN(stop, process.Interrupt(child));
    if (stop.has_ended()) {
      return nullptr;
    }
    if (stop.is_without_signal ||
        (stop.kind == TraceeStop::Kind::kSignal && stop.signal == SIGSTOP)) {
      return slot;
    }
    CLEW_RETURN_IF_ERROR(process.Continue(child, 0));
  }
}

}  // namespace

user_regs_struct ProgramRegisters(const ThreadState& state,
                                  user_regs_struct now, uint64_t ip) {
  for (size_t i = 0; i < kUserGprs.size(); ++i) {
    now.*kUserGprs[i] = state.gpr[i];
  }
  now.eflags = state.rflags;
  now.rip = ip;
  now.gs_base = 0;
  now.orig_rax = UINT64_MAX;
  return now;
}

uint64_t ProgramMask(const SignalState& signals, uint64_t mask) {
  return signals.is_holding != 0    ? signals.held_mask
         : signals.is_blocking != 0 ? signals.blocked_mask
                                    : mask;
}

Status LeaveRuntime(TracedProcess& process, Tid thread,
                    const SharedMemory& shared, ThreadState& state) {
  CLEW_ASSIGN_OR_RETURN(program, process.Registers(thread));
  CLEW_ASSIGN_OR_RETURN(mask, process.SignalMask(thread));
  user_regs_struct entry = program;
  entry.rip = shared.header().places.image + kLeaveAt;
  entry.eflags = kClearFlags;
  entry.gs_base = reinterpret_cast<uint64_t>(state.self);
  entry.orig_rax = UINT64_MAX;
  CLEW_RETURN_IF_ERROR(process.SetSignalMask(thread, UINT64_MAX));
  CLEW_RETURN_IF_ERROR(process.SetRegisters(thread, entry));
  state.leap.has_ended = 0;
  while (state.leap.has_ended == 0) {
    CLEW_RETURN_IF_ERROR(process.Continue(thread, 0));
    CLEW_ASSIGN_OR_RETURN(stop, process.Wait(thread, true));
    if (stop.has_ended()) {
      return Unsupported("the program was ended from outside");
    }
  }
  CLEW_RETURN_IF_ERROR(process.SetRegisters(thread, program));
  return process.SetSignalMask(thread, ProgramMask(state.signals, mask));
}

Status FreeProcess(TracedProcess& process, Tid child, SharedMemory& shared,
                   const std::function<Status()>& undo,
                   const std::function<Status()>& let_go) {
  CLEW_RETURN_IF_ERROR(process.Continue(child, 0));
  CLEW_ASSIGN_OR_RETURN(slot, WaitForParked(process, child, shared));
  if (slot == nullptr) {
    return {};
  }
  CLEW_ASSIGN_OR_RETURN(now, process.Registers(child));
  CLEW_RETURN_IF_ERROR(process.SetRegisters(
      child, ProgramRegisters(slot->state, now, slot->state.signals.boundary)));
  CLEW_RETURN_IF_ERROR(LeaveRuntime(process, child, shared, slot->state));
  CLEW_RETURN_IF_ERROR(undo());
  CLEW_RETURN_IF_ERROR(TakeOut(process, child, shared));
  SharedMemory::Free(*slot);
  return let_go();
}

}  // namespace clew::tracer
