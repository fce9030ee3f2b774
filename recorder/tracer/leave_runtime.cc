#include "recorder/tracer/leave_runtime.h"

#include "common/user_registers.h"

namespace clew::tracer {

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
    if (stop.kind == TraceeStop::Kind::kExited ||
        stop.kind == TraceeStop::Kind::kKilled) {
      return Unsupported("the program was ended from outside");
    }
  }
  CLEW_RETURN_IF_ERROR(process.SetRegisters(thread, program));
  return process.SetSignalMask(thread, ProgramMask(state.signals, mask));
}

}  // namespace clew::tracer
