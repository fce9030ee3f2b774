#include "tests/recorder/tracer/code_writer.h"

#include "common/check.h"

namespace clew::tracer::random_code {
namespace {

constexpr uint8_t kNoIndex = 4;
constexpr uint8_t kNoBase = 5;

uint8_t Low(uint64_t value) { return static_cast<uint8_t>(value & 7); }
bool Bit(uint64_t value, int bit) { return (value >> bit & 1) != 0; }

// The bits of REX that extend the fields: R 4, X 2, B 1.
uint8_t ExtensionBits(const Insn& insn) {
  const Operand& rm = insn.rm;
  const bool is_register = rm.kind == Operand::Kind::kRegister;
  const uint8_t base = is_register ? rm.reg : rm.base.value_or(0);
  unsigned bits = (Bit(insn.reg, 3) ? 4u : 0u) |
                  (Bit(rm.index.value_or(0), 3) ? 2u : 0u) |
                  (Bit(base, 3) ? 1u : 0u);
  if (insn.scheme == Scheme::kEvex && is_register && Bit(rm.reg, 4)) {
    bits |= 2;
  }
  return static_cast<uint8_t>(bits | (insn.rex & 7u));
}

unsigned MandatoryBits(uint8_t mandatory) {
  return mandatory == 0x66   ? 1
         : mandatory == 0xf3 ? 2
         : mandatory == 0xf2 ? 3
                             : 0;
}

void AppendVex(std::vector<uint8_t>& out, const Insn& insn) {
  const unsigned extension = ExtensionBits(insn);
  const unsigned vvvv = ~insn.vvvv & 15u;
  const unsigned low =
      vvvv << 3 | unsigned{insn.length} << 2 | MandatoryBits(insn.mandatory);
  if (insn.scheme == Scheme::kVex2) {
    CLEW_CHECK((extension & 3) == 0 && !insn.wide && insn.map == OpcodeMap::k0F,
               "two bytes of VEX have no X, B, W and map");
    out.push_back(0xc5);
    out.push_back(static_cast<uint8_t>((~extension & 4u) << 5 | low));
    return;
  }
  out.push_back(0xc4);
  out.push_back(static_cast<uint8_t>((~extension & 7u) << 5 |
                                     static_cast<unsigned>(insn.map)));
  out.push_back(static_cast<uint8_t>((insn.wide ? 0x80u : 0u) | low));
}

void AppendEvex(std::vector<uint8_t>& out, const Insn& insn) {
  const unsigned extension = ExtensionBits(insn);
  out.push_back(0x62);
  out.push_back(static_cast<uint8_t>((~extension & 7u) << 5 |
                                     (Bit(insn.reg, 4) ? 0u : 0x10u) |
                                     static_cast<unsigned>(insn.map)));
  out.push_back(static_cast<uint8_t>((insn.wide ? 0x80u : 0u) |
                                     (~insn.vvvv & 15u) << 3 | 4u |
                                     MandatoryBits(insn.mandatory)));
  out.push_back(static_cast<uint8_t>(
      (insn.zeroes ? 0x80u : 0u) | unsigned{insn.length} << 5 |
      (insn.broadcasts ? 0x10u : 0u) | (Bit(insn.vvvv, 4) ? 0u : 8u) |
      insn.mask));
}

void AppendLegacy(std::vector<uint8_t>& out, const Insn& insn) {
  if (insn.mandatory != 0) {
    out.push_back(insn.mandatory);
  }
  const unsigned rex =
      ExtensionBits(insn) | (insn.wide ? 8u : 0u) | (insn.rex & 0x48u);
  if (rex != 0) {
    out.push_back(static_cast<uint8_t>(0x40u | rex));
  }
  if (insn.map != OpcodeMap::kOne) {
    out.push_back(0x0f);
  }
  if (insn.map == OpcodeMap::k0F38 || insn.map == OpcodeMap::k0F3A) {
    out.push_back(insn.map == OpcodeMap::k0F38 ? 0x38 : 0x3a);
  }
}

void AppendModrm(std::vector<uint8_t>& out, const Insn& insn) {
  const Operand& rm = insn.rm;
  const unsigned reg = unsigned{Low(insn.reg)} << 3;
  if (rm.kind == Operand::Kind::kRegister) {
    out.push_back(static_cast<uint8_t>(0xc0u | reg | Low(rm.reg)));
    return;
  }
  if (rm.kind == Operand::Kind::kRelative) {
    out.push_back(static_cast<uint8_t>(reg | 5u));
    return;
  }
  const unsigned base = rm.base ? Low(*rm.base) : kNoBase;
  const unsigned mod = !rm.base || rm.displacement_bytes == 0 ? 0u
                       : rm.displacement_bytes == 1           ? 0x40u
                                                              : 0x80u;
  if (rm.base && !rm.index && base != kRsp) {
    out.push_back(static_cast<uint8_t>(mod | reg | base));
    return;
  }
  out.push_back(static_cast<uint8_t>(mod | reg | 4u));
  const unsigned index = rm.index ? Low(*rm.index) : kNoIndex;
  out.push_back(
      static_cast<uint8_t>(unsigned{rm.scale_bits} << 6 | index << 3 | base));
}

// All up to the displacement.
std::vector<uint8_t> Head(const Insn& insn) {
  std::vector<uint8_t> out;
  if (insn.rm.has_short_address) {
    out.push_back(0x67);
  }
  out.insert(out.end(), insn.prefixes.begin(), insn.prefixes.end());
  switch (insn.scheme) {
    case Scheme::kLegacy:
      AppendLegacy(out, insn);
      break;
    case Scheme::kVex2:
    case Scheme::kVex3:
      AppendVex(out, insn);
      break;
    case Scheme::kEvex:
      AppendEvex(out, insn);
      break;
  }
  out.push_back(insn.opcode);
  AppendModrm(out, insn);
  return out;
}

size_t DisplacementBytes(const Operand& rm) {
  return rm.kind == Operand::Kind::kRelative ? 4 : rm.displacement_bytes;
}

}  // namespace

bool Operand::NeedsRex() const {
  return (kind == Kind::kRegister && reg >= 8) || base.value_or(0) >= 8 ||
         index.value_or(0) >= 8;
}

Operand InRegister(uint8_t reg) {
  Operand operand;
  operand.reg = reg;
  return operand;
}

Operand At(uint64_t addr) {
  Operand operand;
  operand.kind = Operand::Kind::kRelative;
  operand.target = addr;
  return operand;
}

Operand At(Label label) {
  Operand operand = At(0);
  operand.label = label;
  return operand;
}

Operand AtAbsolute(uint64_t addr) {
  Operand operand;
  operand.kind = Operand::Kind::kMemory;
  operand.displacement_bytes = 4;
  operand.displacement = static_cast<int64_t>(addr);
  return operand;
}

Operand AtBase(uint8_t base, int64_t displacement, uint8_t displacement_bytes) {
  Operand operand;
  operand.kind = Operand::Kind::kMemory;
  operand.base = base;
  operand.displacement = displacement;
  operand.displacement_bytes = displacement_bytes;
  if (Low(base) == kNoBase && displacement_bytes == 0) {
    operand.displacement_bytes = 1;
  }
  return operand;
}

size_t Length(const Insn& insn) {
  return Head(insn).size() + DisplacementBytes(insn.rm) + insn.immediate_bytes;
}

void CodeWriter::Number(uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) {
    Byte(value >> (8 * i));
  }
}

void CodeWriter::Write(const Insn& insn) {
  CLEW_CHECK(Length(insn) <= kInsnBytesMax, "an instruction of {} bytes",
             Length(insn));
  const std::vector<uint8_t> head = Head(insn);
  bytes_.insert(bytes_.end(), head.begin(), head.end());
  if (insn.rm.kind != Operand::Kind::kRelative) {
    Number(static_cast<uint64_t>(insn.rm.displacement),
           DisplacementBytes(insn.rm));
  } else if (insn.rm.label) {
    Displacement(*insn.rm.label, 4, insn.immediate_bytes);
  } else {
    const uint64_t value = insn.rm.target - (at() + 4 + insn.immediate_bytes);
    const auto number = static_cast<int64_t>(value);
    CLEW_CHECK(number == static_cast<int32_t>(number),
               "{:#x} is out of reach of {:#x}", insn.rm.target, at());
    Number(value, 4);
  }
  Number(insn.immediate, insn.immediate_bytes);
}

Label CodeWriter::NewLabel() {
  labels_.emplace_back();
  return static_cast<Label>(labels_.size() - 1);
}

Label CodeWriter::Here() {
  const Label label = NewLabel();
  Bind(label);
  return label;
}

void CodeWriter::Displacement(Label label, size_t bytes, size_t bytes_behind) {
  uses_.push_back({label, bytes_.size(), bytes, at() + bytes + bytes_behind});
  Number(0, bytes);
}

void CodeWriter::Address(Label label, size_t bytes) {
  uses_.push_back({label, bytes_.size(), bytes, 0});
  Number(0, bytes);
}

std::vector<uint8_t> CodeWriter::Finish() {
  for (const Use& use : uses_) {
    const std::optional<uint64_t> addr = AddressOf(use.label);
    CLEW_CHECK(addr, "label {} is nowhere", static_cast<size_t>(use.label));
    const uint64_t value = *addr - use.subtracted;
    const auto number = static_cast<int64_t>(value);
    CLEW_CHECK(use.bytes == 8 || number == static_cast<int32_t>(number),
               "{:#x} from {:#x} is out of reach", *addr, use.subtracted);
    CLEW_CHECK(use.bytes != 1 || number == static_cast<int8_t>(number),
               "{:#x} from {:#x} is out of short reach", *addr, use.subtracted);
    for (size_t i = 0; i < use.bytes; ++i) {
      bytes_[use.offset + i] = static_cast<uint8_t>(value >> (8 * i));
    }
  }
  return bytes_;
}

}  // namespace clew::tracer::random_code
