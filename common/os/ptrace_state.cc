// What a stopped thread has: its registers, masks and memory, and the calls
// that it is made to make.
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "common/os/ptrace.h"
#include "common/x86/page.h"

namespace clew {

Result<user_regs_struct> TracedProcess::Registers(Tid thread) const {
  user_regs_struct registers = {};
  if (ptrace(PTRACE_GETREGS, thread.as_int(), nullptr, &registers) != 0) {
    return SystemError(
        errno, fmt::format("cannot read registers of thread {}", thread));
  }
  return registers;
}

Result<siginfo_t> TracedProcess::SignalInfo(Tid thread) const {
  siginfo_t info = {};
  if (ptrace(PTRACE_GETSIGINFO, thread.as_int(), nullptr, &info) != 0) {
    return SystemError(
        errno, fmt::format("cannot read a signal of thread {}", thread));
  }
  return info;
}

Status TracedProcess::SetSignalInfo(Tid thread, const siginfo_t& info) {
  if (ptrace(PTRACE_SETSIGINFO, thread.as_int(), nullptr, &info) != 0) {
    return SystemError(
        errno, fmt::format("cannot change a signal of thread {}", thread));
  }
  return {};
}

Status TracedProcess::SetRegisters(Tid thread,
                                   const user_regs_struct& registers) {
  if (ptrace(PTRACE_SETREGS, thread.as_int(), nullptr, &registers) != 0) {
    return SystemError(
        errno, fmt::format("cannot write registers of thread {}", thread));
  }
  return {};
}

Result<int64_t> TracedProcess::MakeCall(Tid thread, TraceeAddr insn,
                                        uint64_t number,
                                        const std::array<uint64_t, 6>& args) {
  CLEW_ASSIGN_OR_RETURN(before, Registers(thread));
  user_regs_struct call = before;
  call.rip = insn.as_int();
  call.orig_rax = UINT64_MAX;
  call.rax = number;
  call.rdi = args[0];
  call.rsi = args[1];
  call.rdx = args[2];
  call.r10 = args[3];
  call.r8 = args[4];
  call.r9 = args[5];
  CLEW_RETURN_IF_ERROR(SetRegisters(thread, call));
  CLEW_RETURN_IF_ERROR(SetFilters(thread, false));
  user_regs_struct after = call;
  while (after.rip == call.rip) {  // a stop that was asked for comes first
    CLEW_RETURN_IF_ERROR(SingleStep(thread, 0));
    CLEW_ASSIGN_OR_RETURN(stop, Wait(thread, true));
    if (stop.kind != TraceeStop::Kind::kTrap) {
      return Unsupported("the program was ended from outside");
    }
    CLEW_ASSIGN_OR_RETURN(registers, Registers(thread));
    after = registers;
  }
  CLEW_RETURN_IF_ERROR(SetFilters(thread, true));
  CLEW_RETURN_IF_ERROR(SetRegisters(thread, before));
  return static_cast<int64_t>(after.rax);
}

Result<std::vector<std::byte>> TracedProcess::ExtendedState(Tid thread) const {
  constexpr size_t kBytesMax = 65536;
  std::vector<std::byte> state(kBytesMax);
  iovec to = {state.data(), state.size()};
  if (ptrace(PTRACE_GETREGSET, thread.as_int(), NT_X86_XSTATE, &to) != 0) {
    return SystemError(
        errno,
        fmt::format("cannot read vector registers of thread {}", thread));
  }
  state.resize(to.iov_len);
  return state;
}

Status TracedProcess::SetExtendedState(Tid thread,
                                       std::span<const std::byte> state) {
  iovec from = {const_cast<std::byte*>(state.data()), state.size()};
  if (ptrace(PTRACE_SETREGSET, thread.as_int(), NT_X86_XSTATE, &from) != 0) {
    return SystemError(
        errno,
        fmt::format("cannot write vector registers of thread {}", thread));
  }
  return {};
}

Result<uint64_t> TracedProcess::SignalMask(Tid thread) const {
  uint64_t mask = 0;
  if (ptrace(PTRACE_GETSIGMASK, thread.as_int(), sizeof(mask), &mask) != 0) {
    return SystemError(
        errno, fmt::format("cannot read the signal mask of thread {}", thread));
  }
  return mask;
}

Status TracedProcess::SetSignalMask(Tid thread, uint64_t mask) {
  if (ptrace(PTRACE_SETSIGMASK, thread.as_int(), sizeof(mask), &mask) != 0) {
    return SystemError(
        errno,
        fmt::format("cannot write the signal mask of thread {}", thread));
  }
  return {};
}

Result<TracedProcess::Rseq> TracedProcess::RegisteredRseq(Tid thread) const {
  // Source: linux/ptrace.h, PTRACE_GET_RSEQ_CONFIGURATION and struct
  // ptrace_rseq_configuration.
  constexpr long kGetRseqConfiguration = 0x420f;
  struct {
    uint64_t rseq_abi_pointer;
    uint32_t rseq_abi_size;
    uint32_t signature;
    uint32_t flags;
    uint32_t pad;
  } found = {};
  if (syscall(SYS_ptrace, kGetRseqConfiguration, thread.as_int(), sizeof(found),
              &found) < 0) {
    return SystemError(
        errno, fmt::format("cannot ask for the rseq of thread {}", thread));
  }
  return Rseq{.addr = found.rseq_abi_pointer,
              .size_bytes = found.rseq_abi_size,
              .signature = found.signature};
}

Result<TraceeAddr> TracedProcess::InsnPointer(Tid thread) const {
  errno = 0;
  const long value = ptrace(PTRACE_PEEKUSER, thread.as_int(),
                            offsetof(user_regs_struct, rip), nullptr);
  if (errno != 0) {
    return SystemError(
        errno, fmt::format("cannot read registers of thread {}", thread));
  }
  return TraceeAddr(static_cast<uint64_t>(value));
}

size_t TracedProcess::ReadMemory(TraceeAddr addr,
                                 std::span<uint8_t> bytes) const {
  // Page by page, because a transfer stops before a part that is not mapped.
  size_t done = 0;
  while (done < bytes.size()) {
    const uint64_t from = addr.as_int() + done;
    const size_t count =
        std::min<size_t>(bytes.size() - done, kPageBytes - from % kPageBytes);
    iovec local = {bytes.data() + done, count};
    iovec remote = {reinterpret_cast<void*>(from), count};
    const ssize_t got = process_vm_readv(process_, &local, 1, &remote, 1, 0);
    if (got <= 0) {
      break;
    }
    done += static_cast<size_t>(got);
  }
  return done;
}

}  // namespace clew
