#include "follower/signal_frame.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "machine/xsave.h"

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

// What tells that an XSAVE area follows the legacy region. Source: the same
// file, struct _fpx_sw_bytes, FP_XSTATE_MAGIC1 and FP_XSTATE_MAGIC2.
struct FpxSwBytes {
  uint32_t magic1;
  uint32_t extended_size;
  uint64_t xfeatures;    // components that are restored from the area
  uint32_t xstate_size;  // of the area; the second magic word follows it
  std::array<uint32_t, 7> padding;
};
constexpr uint32_t kXstateMagic1 = 0x46505853;
constexpr uint32_t kXstateMagic2 = 0x46505845;

template <class T>
bool PeekInto(const machine::Memory& memory, uint64_t addr, T& value) {
  return memory.Peek(addr, std::as_writable_bytes(std::span(&value, 1)));
}

// Returns the AVX component of the area at `fpstate` which begins with
// `legacy`; nothing, which is its initial state, if the kernel restores none
// from there: linux 6.1 arch/x86/kernel/fpu/signal.c, check_xstate_in_sigframe
// and restore_fpregs_from_user.
std::optional<machine::VecLane> RestoredAvx(const machine::Memory& memory,
                                            uint64_t fpstate,
                                            const machine::FxsaveArea& legacy) {
  const auto software = std::bit_cast<FpxSwBytes>(legacy.software);
  machine::XsaveHeader header;
  uint32_t magic2 = 0;
  if (software.magic1 != kXstateMagic1 ||
      software.xstate_size < sizeof(legacy) + sizeof(header) ||
      software.xstate_size > software.extended_size ||
      !PeekInto(memory, fpstate + software.xstate_size, magic2) ||
      magic2 != kXstateMagic2 ||
      !PeekInto(memory, fpstate + sizeof(legacy), header)) {
    return std::nullopt;
  }
  const uint64_t in_use = software.xfeatures & header.xstate_bv;
  const auto offset =
      machine::XsaveLayout().OffsetOf(machine::kComponentAvx, header.xcomp_bv);
  machine::VecLane avx = {};
  if ((in_use >> machine::kComponentAvx & 1) == 0 || !offset ||
      !PeekInto(memory, fpstate + *offset, avx)) {
    return std::nullopt;
  }
  return avx;
}

}  // namespace

bool RestoreSignalFrame(const machine::Memory& memory,
                        machine::Registers& registers) {
  std::array<uint64_t, kContextWords> context = {};
  if (!PeekInto(memory, registers.gpr[kRsp] + kContextRegisters, context)) {
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
  if (fpstate != 0 && PeekInto(memory, fpstate, area)) {
    registers.mxcsr = area.pointers.mxcsr;
    const auto avx = RestoredAvx(memory, fpstate, area);
    registers.vec = {area.xmm, avx.value_or(machine::VecLane())};
    registers.avx_in_use = avx.has_value();
    machine::RestoreX87(area, registers.x87);
  }
  return true;
}

}  // namespace clew::follower
