#include "recorder/tracer/calls_in_program.h"

#include <cerrno>
#include <utility>

namespace clew::tracer {

using recorder::GuestMemory;

Result<CallsInProgram> CallsInProgram::Begin(TracedProcess& process,
                                             const GuestMemory& memory,
                                             Tid thread) {
  constexpr Code kSyscall = {0x0f, 0x05};
  CLEW_ASSIGN_OR_RETURN(ip, process.InsnPointer(thread));
  CLEW_ASSIGN_OR_RETURN(mask, process.SignalMask(thread));
  const auto code = memory.Load<Code>(ip.as_int());
  if (!code || !memory.Write(ip.as_int(), kSyscall.data(), kSyscall.size())) {
    return SystemError(EFAULT, "cannot write the program's code");
  }
  CallsInProgram calls(process, memory, thread, ip, {*code, mask});
  CLEW_RETURN_IF_ERROR(process.SetSignalMask(thread, UINT64_MAX));
  return calls;
}

CallsInProgram::CallsInProgram(CallsInProgram&& other) noexcept
    : process_(other.process_),
      memory_(other.memory_),
      thread_(other.thread_),
      ip_(other.ip_),
      before_(std::exchange(other.before_, std::nullopt)) {}

CallsInProgram::~CallsInProgram() {
  if (before_) {
    (void)memory_.Write(ip_.as_int(), before_->code.data(),
                        before_->code.size());
    (void)process_.SetSignalMask(thread_, before_->mask);
  }
}

Result<uint64_t> CallsInProgram::Make(const char* what, uint64_t number,
                                      const std::array<uint64_t, 6>& args) {
  CLEW_ASSIGN_OR_RETURN(result, process_.MakeCall(thread_, ip_, number, args));
  if (result < 0) {
    return SystemError(static_cast<int>(-result), what);
  }
  return static_cast<uint64_t>(result);
}

}  // namespace clew::tracer
