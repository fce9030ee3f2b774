#include "follower/signal_frame.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "machine/fxsave.h"

namespace clew::follower {
namespace {

// Byte offsets in the frame that rt_sigreturn finds at rsp, a struct ucontext.
// Source: linux arch/x86/include/uapi/asm/sigcontext.h, struct sigcontext_64,
// and asm-generic/ucontext.h.
constexpr uint64_t kContextRegisters = 40;
constexpr std::array<Gpr, 16> kContextOrder = {
    kR8,  kR9,  kR10, kR11, kR12, kR13, kR14, kR15,
    kRdi, kRsi, kRbp, kRbx, kRdx, kRax, kRcx, kRsp};
constexpr size_t kContextRip = 16;
constexpr size_t kContextFlags = 17;
constexpr size_t kContextFpstate = 23;
constexpr size_t kContextWords = 24;

}  // namespace

bool RestoreSignalFrame(const machine::Memory& memory,
                        machine::Registers& registers) {
  std::array<uint64_t, kContextWords> context = {};
  if (!memory.Peek(registers.gpr[kRsp] + kContextRegisters,
                   std::as_writable_bytes(std::span(context)))) {
    return false;
  }
  for (size_t i = 0; i < kContextOrder.size(); ++i) {
    registers.gpr[kContextOrder[i]] = context[i];
  }
  registers.rip = context[kContextRip];
  constexpr uint64_t kRestored =
      machine::kFlagsArithmetic | machine::kFlagDirection | machine::kFlagId;
  registers.rflags =
      (registers.rflags & ~kRestored) | (context[kContextFlags] & kRestored);
  const uint64_t fpstate = context[kContextFpstate];
  machine::FxsaveArea area;
  if (fpstate != 0 &&
      memory.Peek(fpstate, std::as_writable_bytes(std::span(&area, 1)))) {
    registers.mxcsr = area.pointers.mxcsr;
    registers.vec[0] = area.xmm;
    machine::RestoreX87(area, registers.x87);
  }
  return true;
}

}  // namespace clew::follower
