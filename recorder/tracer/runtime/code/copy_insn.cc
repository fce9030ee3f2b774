#include "recorder/tracer/runtime/code/copy_insn.h"

#include <algorithm>
#include <optional>

#include "common/x86/input_insn.h"

namespace clew::tracer {
namespace {

using x86::BranchClass;
using x86::Layout;
using x86::OpcodeMap;

bool IsRipRelative(const Layout& layout) {
  return layout.names_memory() && (layout.modrm.value_or(0) & 0xc7) == 5;
}

// Where an instruction has the bit that extends the base register; nullopt: it
// cannot. In VEX and EVEX the bit is inverted.
struct BaseBit {
  size_t at = 0;
  uint8_t mask = 0;
  bool is_inverted = false;
};
std::optional<BaseBit> BaseBitOf(const x86::Opcode& opcode) {
  switch (opcode.encoding) {
    case x86::Encoding::kVex2:
      return std::nullopt;
    case x86::Encoding::kVex3:
      return BaseBit{size_t{opcode.bytes} - 3, 0x20, true};
    case x86::Encoding::kEvex:
      return BaseBit{size_t{opcode.bytes} - 4, 0x20, true};
    case x86::Encoding::kLegacy:
      break;
  }
  if (opcode.prefixes.rex == 0) {
    return std::nullopt;
  }
  const size_t escape = opcode.map == OpcodeMap::kOneByte ? 0
                        : opcode.map == OpcodeMap::k0F    ? 1
                                                          : 2;
  return BaseBit{opcode.bytes - 2 - escape, 1, false};
}

// The register that vvvv of VEX or EVEX names, without its upper bit; 0xff: it
// has none.
uint8_t NamedByVvvv(const x86::Opcode& opcode, const uint8_t* insn) {
  switch (opcode.encoding) {
    case x86::Encoding::kLegacy:
      return 0xff;
    case x86::Encoding::kVex2:
    case x86::Encoding::kVex3:
    case x86::Encoding::kEvex:
      break;
  }
  const size_t behind = opcode.encoding == x86::Encoding::kEvex ? 3 : 2;
  return ~insn[opcode.bytes - behind] >> 3 & 7;
}

// A register that an instruction with an operand in memory does not use: none
// of these is one's without being named, but RBX of CMPXCHG8B and CMPXCHG16B,
// which name one at most.
Register FreeRegister(const Layout& layout, const uint8_t* insn) {
  const uint8_t in_modrm = layout.modrm.value_or(0) >> 3 & 7;
  const uint8_t in_vvvv = NamedByVvvv(layout.opcode, insn);
  for (const Register gpr : {kRdi, kRsi}) {
    if (gpr != in_modrm && gpr != in_vvvv) {
      return gpr;
    }
  }
  return kRbx;
}

// With [gpr] for the operand. Returns the register.
Register CopyThroughRegister(Code& code, const Insn& insn) {
  const Register gpr = FreeRegister(insn.layout, insn.bytes);
  Save(code, gpr);
  LoadNumber(code, gpr, insn.operand());
  const std::optional<BaseBit> base = BaseBitOf(insn.layout.opcode);
  uint8_t* const copy = code.at();
  code.Bytes(insn.all().first(insn.modrm_at()));
  if (base && base->is_inverted) {
    copy[base->at] |= base->mask;
  } else if (base) {
    copy[base->at] &= static_cast<uint8_t>(~base->mask);
  }
  code.Byte((insn.layout.modrm.value_or(0) & 0x38) | gpr);
  code.Bytes(insn.all().subspan(insn.displacement_at() + 4));
  Restore(code, gpr);
  return gpr;
}

// XBEGIN: the target of its abort is relative.
bool IsXbegin(const Insn& insn) {
  return insn.layout.opcode.IsLegacy(OpcodeMap::kOneByte) &&
         insn.layout.opcode.code == 0xc7 && insn.layout.modrm == 0xf8;
}

// RDGSBASE, WRGSBASE; MOV, POP and LGS to GS. What they would read or change is
// the runtime's.
bool UsesGsBase(const Layout& layout) {
  const x86::Opcode& opcode = layout.opcode;
  const unsigned reg = layout.modrm.value_or(0) >> 3 & 7;
  if (opcode.prefixes.segment == x86::Segment::kGs && layout.names_memory() &&
      !(opcode.IsLegacy(OpcodeMap::kOneByte) && opcode.code == 0x8d)) {
    return true;
  }
  if (opcode.IsLegacy(OpcodeMap::kOneByte)) {
    return opcode.code == 0x8e && reg == 5;
  }
  if (!opcode.IsLegacy(OpcodeMap::k0F)) {
    return false;
  }
  return opcode.code == 0xa9 || opcode.code == 0xb5 ||
         (opcode.code == 0xae && opcode.prefixes.rep &&
          !layout.names_memory() && (reg == 1 || reg == 3));
}

}  // namespace

Insn ReadInsn(uint64_t addr, uint64_t end) {
  return ReadInsn(addr, {reinterpret_cast<const uint8_t*>(addr),
                         std::min<uint64_t>(end - addr, x86::kInsnBytesMax)});
}

Insn ReadInsn(uint64_t addr, std::span<const uint8_t> bytes) {
  Insn insn{addr, bytes.data(), {}, {}};
  insn.layout = x86::ScanLayout(bytes);
  if (insn.layout.status == x86::LayoutStatus::kWhole) {
    insn.branch = x86::ClassifyBranch(insn.layout.opcode, insn.all());
  }
  return insn;
}

Register CopyInsn(Code& code, const Insn& insn) {
  if (!IsRipRelative(insn.layout)) {
    code.Bytes(insn.all());
    return kNoRegister;
  }
  const uint64_t end = AddrOf(code.at()) + insn.layout.length;
  const bool reaches = Reaches(end, insn.operand());
  if (!reaches || insn.layout.opcode.prefixes.address_size) {
    return CopyThroughRegister(code, insn);
  }
  code.Bytes(insn.all().first(insn.displacement_at()));
  code.Word(static_cast<uint32_t>(insn.operand() - end));
  code.Bytes(insn.all().subspan(insn.displacement_at() + 4));
  return kNoRegister;
}

void LoadTarget(Code& code, const Insn& insn) {
  const x86::Prefixes& prefixes = insn.layout.opcode.prefixes;
  if (IsRipRelative(insn.layout)) {
    LoadNumber(code, kRcx, insn.operand());
  }
  if (prefixes.segment == x86::Segment::kFs) {
    code.Byte(0x64);
  }
  if (IsRipRelative(insn.layout)) {
    code.Bytes({0x48, 0x8b, 0x09});  // mov rcx, [rcx]
    return;
  }
  if (prefixes.address_size) {
    code.Byte(0x67);
  }
  code.Bytes({static_cast<uint8_t>(0x48 | (prefixes.rex & 3)), 0x8b,
              static_cast<uint8_t>((insn.layout.modrm.value_or(0) & 0xc7) |
                                   kRcx << 3)});
  code.Bytes(insn.all().subspan(insn.modrm_at() + 1));
}

uint8_t* CopyConditional(Code& code, const Insn& insn) {
  const x86::Opcode& opcode = insn.layout.opcode;
  const bool is_jcc = opcode.map == OpcodeMap::k0F || opcode.code >> 4 == 7;
  if (is_jcc) {
    code.Bytes({0x0f, static_cast<uint8_t>(0x80 | (opcode.code & 15))});
  } else {
    // Over a jump to what follows, to one to the taken side.
    code.Bytes(insn.all().first(opcode.bytes));
    code.Bytes({2, 0xeb, 5, 0xe9});
  }
  uint8_t* const displacement = code.at();
  code.Word(0);
  return displacement;
}

void PopTarget(Code& code, const Insn& insn) {
  code.Bytes({0x48, 0x8b, 0x0c, 0x24});  // mov rcx, [rsp]
  code.Bytes({0x48, 0x8d, 0xa4, 0x24});  // lea rsp, [rsp + bytes]
  const uint8_t* operand = insn.bytes + insn.layout.opcode.bytes;
  code.Word(8u + (insn.layout.immediate_bytes == 2
                      ? operand[0] | static_cast<uint32_t>(operand[1]) << 8
                      : 0u));
}

// push value, where it is a sign-extended number.
void PushAddress(Arena& arena, uint64_t value) {
  const auto number = static_cast<int64_t>(value);
  if (number == static_cast<int32_t>(number)) {
    arena.hot.Byte(0x68);
    arena.hot.Word(static_cast<uint32_t>(value));
    return;
  }
  arena.hot.Bytes({0xff, 0x35});  // push [number]
  arena.hot.Relative(arena.Number(value));
}

bool IsSyscall(const Insn& insn) {
  return insn.layout.opcode.IsLegacy(OpcodeMap::k0F) &&
         insn.layout.opcode.code == 0x05;
}

bool IsTrap(const Insn& insn) {
  const x86::Opcode& opcode = insn.layout.opcode;
  return opcode.IsLegacy(OpcodeMap::kOneByte) &&
         (opcode.code == 0xcc || opcode.code == 0xcd || opcode.code == 0xf1);
}

bool IsUnsupported(const Insn& insn) {
  return UsesGsBase(insn.layout) || IsXbegin(insn) ||
         (insn.branch.branch_class == BranchClass::kFar && !IsSyscall(insn) &&
          !IsTrap(insn));
}

bool IsInput(const Insn& insn) {
  return x86::ClassifyInput(insn.layout) != x86::InputInsn::kNone;
}

bool IsStepped(const Insn& insn) {
  // POPF may have the CPU trap behind each instruction.
  const bool sets_trap_flag =
      insn.layout.opcode.IsLegacy(OpcodeMap::kOneByte) &&
      insn.layout.opcode.code == 0x9d;
  return IsUnsupported(insn) || IsTrap(insn) || sets_trap_flag ||
         IsInput(insn) || x86::ChoosesComponents(insn.layout);
}

}  // namespace clew::tracer
