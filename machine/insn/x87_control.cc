// FLDCW, FNSTCW, FNSTSW, FLDENV, FNSTENV, FRSTOR, FNSAVE, FNINIT, FNCLEX, FNOP,
// FWAIT. A pending exception that is not masked is never delivered: the
// recorder's CPU (QEMU) does not either.

#include "machine/insn/x87_common.h"

namespace clew::machine {
namespace {

// The 28 bytes that FNSTENV stores in 64-bit mode (Intel SDM vol. 1, "x87 FPU
// State Image in Memory"). The pointers to the last instruction and operand
// are not kept: zeros.
struct Environment {
  uint16_t control = 0;
  uint16_t ones0 = 0xffff;
  uint16_t status = 0;
  uint16_t ones1 = 0xffff;
  uint16_t tags = 0;
  uint16_t ones2 = 0xffff;
  uint32_t insn_offset = 0;
  uint32_t insn_selector = 0;
  uint32_t data_offset = 0;
  uint16_t data_selector = 0;
  uint16_t ones3 = 0xffff;
};
static_assert(sizeof(Environment) == 28);
constexpr uint64_t kStateBytes = 108;

Environment EnvironmentOf(const X87& x87) {
  Environment env;
  env.control = x87.control;
  env.status = x87.status;
  env.tags = x87.tag;
  return env;
}

template <class D>
void LoadControl(Cpu<D>& cpu, const Insn& insn) {
  const auto value = LoadPlain<D, uint16_t>(cpu, insn);
  if (!cpu.faulted()) {
    X87Stack(cpu.regs().x87).SetControl(value);
  }
}

template <class D>
void StoreControl(Cpu<D>& cpu, const Insn& insn) {
  cpu.template Store<uint16_t>(cpu.Address(insn),
                               cpu.d().Const(cpu.regs().x87.control));
}

template <class D>
void StoreStatus(Cpu<D>& cpu, const Insn& insn) {
  cpu.template Store<uint16_t>(cpu.Address(insn),
                               cpu.d().Const(cpu.regs().x87.status));
}

template <class D>
void StatusToAx(Cpu<D>& cpu, const Insn&) {
  cpu.template SetReg<uint16_t>(8 * kRax, cpu.d().Const(cpu.regs().x87.status));
}

template <class D>
void StoreEnvironment(Cpu<D>& cpu, const Insn& insn) {
  const Environment env = EnvironmentOf(cpu.regs().x87);
  if (cpu.StoreBytes(cpu.Address(insn), std::as_bytes(std::span(&env, 1)))) {
    X87Stack(cpu.regs().x87).MaskExceptions();
  }
}

void Apply(const Environment& env, X87& x87) {
  X87Stack stack(x87);
  stack.SetControl(env.control);
  stack.SetStatus(env.status);
  stack.SetTags(env.tags);
}

template <class D>
void LoadEnvironment(Cpu<D>& cpu, const Insn& insn) {
  Environment env;
  if (cpu.LoadBytes(cpu.Address(insn),
                    std::as_writable_bytes(std::span(&env, 1)))) {
    Apply(env, cpu.regs().x87);
  }
}

template <class D>
void SaveState(Cpu<D>& cpu, const Insn& insn) {
  X87Stack stack(cpu.regs().x87);
  const Environment env = EnvironmentOf(cpu.regs().x87);
  std::array<std::byte, kStateBytes> image = {};
  std::memcpy(image.data(), &env, sizeof(env));
  for (unsigned i = 0; i < 8; ++i) {
    std::byte* at = image.data() + sizeof(env) + size_t{10} * i;
    std::memcpy(at, &stack.st(i).significand, 8);
    std::memcpy(at + 8, &stack.st(i).sign_exponent, 2);
  }
  if (cpu.StoreBytes(cpu.Address(insn), image)) {
    stack.Initialise();
  }
}

template <class D>
void RestoreState(Cpu<D>& cpu, const Insn& insn) {
  std::array<std::byte, kStateBytes> image = {};
  if (!cpu.LoadBytes(cpu.Address(insn), image)) {
    return;
  }
  Environment env;
  std::memcpy(&env, image.data(), sizeof(env));
  X87& x87 = cpu.regs().x87;
  for (unsigned i = 0; i < 8; ++i) {
    const std::byte* at = image.data() + sizeof(env) + size_t{10} * i;
    Float80& reg = x87.regs[((env.status >> 11) + i) & 7u];
    std::memcpy(&reg.significand, at, 8);
    std::memcpy(&reg.sign_exponent, at + 8, 2);
  }
  Apply(env, x87);
}

template <class D>
void Initialise(Cpu<D>& cpu, const Insn&) {
  X87Stack(cpu.regs().x87).Initialise();
}

template <class D>
void ClearExceptions(Cpu<D>& cpu, const Insn&) {
  X87Stack(cpu.regs().x87).ClearExceptions();
}

template <class D>
void Nothing(Cpu<D>& cpu, const Insn&) {
  cpu.regs().x87.in_use = true;
}

template <class D>
Handler<D> SelectMemory(const Insn& insn) {
  switch (unsigned{insn.opcode[0]} << 4 | RegField(insn)) {
    case 0xd94:
      return insn.opsize ? nullptr : &LoadEnvironment<D>;
    case 0xd95:
      return &LoadControl<D>;
    case 0xd96:
      return insn.opsize ? nullptr : &StoreEnvironment<D>;
    case 0xd97:
      return &StoreControl<D>;
    case 0xdd4:
      return insn.opsize ? nullptr : &RestoreState<D>;
    case 0xdd6:
      return insn.opsize ? nullptr : &SaveState<D>;
    case 0xdd7:
      return &StoreStatus<D>;
    default:
      return nullptr;
  }
}

}  // namespace

template <class D>
Handler<D> SelectX87Control(const Insn& insn) {
  if (insn.opcode[0] == 0x9b) {
    return &Nothing<D>;
  }
  if (!IsRegisterForm(insn)) {
    return SelectMemory<D>(insn);
  }
  switch (insn.opcode[0] << 8 | insn.modrm) {
    case 0xd9d0:  // FNOP
      return &Nothing<D>;
    case 0xdbe2:
      return &ClearExceptions<D>;
    case 0xdbe3:
      return &Initialise<D>;
    case 0xdfe0:
      return &StatusToAx<D>;
    default:
      return nullptr;
  }
}

CLEW_INSTANTIATE_X87(SelectX87Control);

}  // namespace clew::machine
