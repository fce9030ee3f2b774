#include "follower/told_insn.h"

#include "common/x86/input_insn.h"

namespace clew::follower {
namespace {

using x86::InputInsn;

void SetCpuid(const x86::CpuidResult& told, InsnInput& input) {
  input.rax = told.eax;
  input.rbx = told.ebx;
  input.rcx = told.ecx;
  input.rdx = told.edx;
}

void SetWide(uint64_t value, InsnInput& input) {
  input.rax = value & UINT32_MAX;
  input.rdx = value >> 32;
}

}  // namespace

std::optional<InsnInput> ToldResult(const ToldCpu& cpu,
                                    std::span<const std::byte> insn,
                                    const machine::Registers& registers,
                                    const StreamBlock& block, CoreId core) {
  const auto eax = static_cast<uint32_t>(registers.gpr[kRax]);
  const auto ecx = static_cast<uint32_t>(registers.gpr[kRcx]);
  InsnInput input = {.ip = TraceeAddr(registers.rip),
                     .rax = registers.gpr[kRax],
                     .rbx = registers.gpr[kRbx],
                     .rcx = registers.gpr[kRcx],
                     .rdx = registers.gpr[kRdx],
                     .rflags = registers.rflags};
  switch (x86::ClassifyInput(
      {reinterpret_cast<const uint8_t*>(insn.data()), insn.size()})) {
    case InputInsn::kCpuid:
      SetCpuid(cpu.cpuid.Find(eax, ecx), input);
      return input;
    case InputInsn::kXgetbv:
      if (ecx != 0 || cpu.xcr0 == 0) {
        return std::nullopt;
      }
      SetWide(cpu.xcr0, input);
      return input;
    case InputInsn::kRdtscp:
      // Source: linux arch/x86/kernel/cpu/common.c, setup_getcpu: the number of
      // the CPU, behind it that of its node.
      input.rcx = core.as_int();
      SetWide(block.time.lo.as_int(), input);
      return input;
    case InputInsn::kRdtsc:
      SetWide(block.time.lo.as_int(), input);
      return input;
    case InputInsn::kNone:
    case InputInsn::kOther:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace clew::follower
