#include "follower/kernel/signal_frame.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

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

// What the kernel restores of a frame's area, each component a bit.
struct Restored {
  uint64_t components = 0;  // from there; others become initial
  uint64_t stored = 0;      // of those, what the area does not call initial
  uint64_t xcomp_bv = 0;
};

// Without both magic words that is the legacy region. Source: linux 6.1
// arch/x86/kernel/fpu/signal.c, check_xstate_in_sigframe and
// restore_fpregs_from_user.
Restored RestoredOf(const machine::Memory& memory, uint64_t fpstate,
                    const machine::FxsaveArea& legacy) {
  constexpr uint64_t kLegacy = machine::ComponentBit(machine::kComponentX87) |
                               machine::ComponentBit(machine::kComponentSse);
  const auto software = std::bit_cast<FpxSwBytes>(legacy.software);
  machine::XsaveHeader header;
  uint32_t magic2 = 0;
  if (software.magic1 != kXstateMagic1 ||
      software.xstate_size < sizeof(legacy) + sizeof(header) ||
      software.xstate_size > software.extended_size ||
      !PeekInto(memory, fpstate + software.xstate_size, magic2) ||
      magic2 != kXstateMagic2 ||
      !PeekInto(memory, fpstate + sizeof(legacy), header)) {
    return {.components = kLegacy, .stored = kLegacy};
  }
  return {.components = software.xfeatures,
          .stored = software.xfeatures & header.xstate_bv,
          .xcomp_bv = header.xcomp_bv};
}

void RestoreExtendedState(const machine::Memory& memory, uint64_t fpstate,
                          const machine::FxsaveArea& legacy,
                          const machine::XsaveLayout& layout,
                          machine::Registers& registers) {
  const Restored restored = RestoredOf(memory, fpstate, legacy);
  machine::InitialiseExtendedState(registers);
  if ((restored.components & machine::ComponentBit(machine::kComponentSse)) !=
      0) {
    registers.mxcsr = legacy.pointers.mxcsr;
  }
  machine::RestoreLegacy(legacy, restored.stored, registers);
  for (const unsigned component : machine::kExtendedComponents) {
    const auto offset = layout.OffsetOf(component, restored.xcomp_bv);
    std::array<std::byte, machine::kComponentBytesMax> room;
    const auto bytes =
        std::span(room).first(machine::ComponentBytes(component));
    if ((restored.stored & machine::ComponentBit(component)) != 0 && offset &&
        memory.Peek(fpstate + *offset, bytes)) {
      machine::RestoreComponent(component, bytes, registers);
    }
  }
}

}  // namespace

bool RestoreSignalFrame(const machine::Memory& memory,
                        const machine::XsaveLayout& layout,
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
    RestoreExtendedState(memory, fpstate, area, layout, registers);
  }
  return true;
}

}  // namespace clew::follower
