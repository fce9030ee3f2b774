#include "tests/recorder/tracer/random_code_insns.h"

#include <algorithm>

namespace clew::tracer::random_code {
namespace {

constexpr uint64_t kRedZoneBytes = 120;
constexpr uint8_t kRexEmpty = 0x40;

}  // namespace

InsnWriter::InsnWriter(Program& program)
    : program_(program),
      dice_(program.dice),
      code_(program.code),
      registers_(program.registers),
      forms_(FormsOf(program.features)) {}

const Form& InsnWriter::RandomForm() {
  const uint64_t kind = dice_.Below(20);
  if (kind < 2 && !forms_.evex.empty()) {
    return dice_.Pick(forms_.evex);
  }
  if (kind < 6 && !forms_.vex.empty()) {
    return dice_.Pick(forms_.vex);
  }
  return dice_.Pick(kind < 9 ? forms_.sse : forms_.integer);
}

void InsnWriter::WriteAny() {
  for (;;) {
    const Form& form = RandomForm();
    if (!form.Has(kWritesRcx) || !registers_.IsReserved(kRcx)) {
      WriteForm(form);
      return;
    }
  }
}

void InsnWriter::WriteSome(uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    WriteAny();
  }
}

void InsnWriter::WriteForm(const Form& form) {
  Insn insn;
  insn.scheme = form.scheme;
  insn.mandatory = form.mandatory;
  insn.map = form.map;
  insn.opcode = form.opcode;
  const size_t size = ChooseSize(form, insn);
  ChooseVectorFields(form, insn);
  ChooseRm(form, size, insn);
  ChooseReg(form, insn);
  ChooseVvvv(form, insn);
  ChooseImmediate(form, size, insn);
  if (insn.scheme == Scheme::kVex3 && insn.map == OpcodeMap::k0F &&
      !insn.wide && !insn.rm.NeedsRex() && dice_.OneIn(2)) {
    insn.scheme = Scheme::kVex2;
  }
  Decorate(form, insn);
  code_.Write(insn);
}

// Of the general operands.
size_t InsnWriter::ChooseSize(const Form& form, Insn& insn) {
  size_t size = 4;
  if (form.Has(kByte)) {
    size = 1;
    insn.rex = dice_.OneIn(2) ? kRexEmpty : 0;
  } else if (form.Has(kWide)) {
    size = 8;
  } else if (form.Has(kSized)) {
    size = form.Has(kNo16) ? dice_.Pick<size_t>({4, 8})
                           : dice_.Pick<size_t>({2, 4, 8, 8});
  }
  if (size == 2) {
    insn.prefixes.push_back(0x66);
  }
  insn.wide = size == 8;
  return size;
}

void InsnWriter::ChooseVectorFields(const Form& form, Insn& insn) {
  if (insn.scheme == Scheme::kLegacy || form.Has(kLength128)) {
    return;
  }
  const bool is_evex = insn.scheme == Scheme::kEvex;
  insn.length = form.Has(kLength256)
                    ? 1
                    : static_cast<uint8_t>(dice_.Below(is_evex ? 3 : 2));
  if (form.Has(kMasked) && dice_.OneIn(2)) {
    insn.mask = static_cast<uint8_t>(dice_.Below(8));
    insn.zeroes = form.Has(kZeroes) && insn.mask != 0 && dice_.OneIn(2);
  }
}

void InsnWriter::ChooseRm(const Form& form, size_t size, Insn& insn) {
  const bool is_register =
      !form.Has(kMemory) && (form.Has(kRegister) || dice_.OneIn(3));
  if (is_register) {
    insn.rm = InRegister(
        form.Has(kVectorRm) ? registers_.Vector(insn.scheme)
                            : registers_.General(form.Has(kByte), insn.rex != 0,
                                                 form.Has(kWritesRm)));
    return;
  }
  size_t bytes = form.memory_bytes;
  if (bytes == 0) {
    insn.broadcasts = form.Has(kBroadcasts) && dice_.OneIn(3);
    bytes = form.Has(kVector) && !insn.broadcasts ? size_t{16} << insn.length
                                                  : size;
  }
  const bool is_locked = form.Has(kLocks) && dice_.OneIn(3);
  if (is_locked) {
    insn.prefixes.insert(insn.prefixes.begin(), 0xf0);
  }
  const bool only_reads = !form.Has(kWritesRm) && !form.Has(kAligned);
  const uint64_t code_bytes = code_.at() - code_.start();
  if (form.Has(kNoAccess) && dice_.OneIn(3)) {
    insn.rm = Anywhere();
  } else if (only_reads && code_bytes > bytes && dice_.OneIn(12)) {
    insn.rm = OperandAt(code_.start() + dice_.Below(code_bytes - bytes));
  } else {
    insn.rm = ScratchOperand(bytes, is_locked || form.Has(kAligned));
  }
  // Its displacement of a byte would count larger units.
  if (insn.scheme == Scheme::kEvex && insn.rm.displacement_bytes == 1) {
    insn.rm.displacement_bytes = 4;
  }
}

void InsnWriter::ChooseReg(const Form& form, Insn& insn) {
  const bool has_rex = insn.rex != 0 || insn.wide || insn.rm.NeedsRex();
  if (form.reg != kAnyReg) {
    insn.reg = static_cast<uint8_t>(form.reg);
  } else if (form.Has(kMaskReg)) {
    insn.reg = static_cast<uint8_t>(dice_.Below(8));
  } else if (form.Has(kVectorReg)) {
    insn.reg = registers_.Vector(insn.scheme);
  } else {
    insn.reg =
        registers_.General(form.Has(kByte), has_rex, form.Has(kWritesReg));
  }
}

void InsnWriter::ChooseVvvv(const Form& form, Insn& insn) {
  if (form.Has(kVvvvVector)) {
    insn.vvvv = registers_.Vector(insn.scheme);
  } else if (form.Has(kVvvv)) {
    insn.vvvv = registers_.General(false, true, form.Has(kWritesVvvv));
  }
}

void InsnWriter::ChooseImmediate(const Form& form, size_t size, Insn& insn) {
  insn.immediate = dice_.Number();
  if (form.Has(kImm)) {
    insn.immediate_bytes = size == 2 ? 2 : 4;
  } else if (form.Has(kImm8)) {
    insn.immediate_bytes = 1;
  } else if (form.Has(kImmRegister)) {
    insn.immediate_bytes = 1;
    insn.immediate = dice_.Below(16) << 4;
  }
}

// ---- Loads -----------------------------------------------------------------

void InsnWriter::WriteWithImmediate(uint8_t opcode, uint8_t reg,
                                    const Operand& rm, bool wide, uint8_t bytes,
                                    uint64_t immediate) {
  Insn insn;
  insn.opcode = opcode;
  insn.wide = wide;
  insn.reg = reg;
  insn.rm = rm;
  insn.immediate_bytes = bytes;
  insn.immediate = immediate;
  code_.Write(insn);
}

// mov reg, number
void InsnWriter::LoadNumber(uint8_t reg, uint64_t number) {
  const uint8_t b = reg >> 3;
  const auto opcode = static_cast<uint8_t>(0xb8 | (reg & 7));
  const auto as_signed = static_cast<int64_t>(number);
  if (number >> 32 == 0 && !dice_.OneIn(3)) {
    if (b != 0 || dice_.OneIn(6)) {
      code_.Byte(kRexEmpty | b);
    }
    code_.Byte(opcode);
    code_.Number(number, 4);
  } else if (as_signed == static_cast<int32_t>(number) && dice_.OneIn(2)) {
    code_.Bytes({static_cast<uint8_t>(0x48 | b), 0xc7,
                 static_cast<uint8_t>(0xc0 | (reg & 7))});
    code_.Number(number, 4);
  } else {
    code_.Bytes({static_cast<uint8_t>(0x48 | b), opcode});
    code_.Number(number, 8);
  }
}

void InsnWriter::LoadAddress(uint8_t reg, uint64_t addr) {
  const auto distance = static_cast<int64_t>(addr - code_.at());
  constexpr int64_t kReach = 0x7ffff000;
  if (distance < kReach && distance > -kReach && dice_.OneIn(2)) {
    Write(0x8d, reg, At(addr));
  } else {
    LoadNumber(reg, addr);
  }
}

void InsnWriter::LoadLabel(uint8_t reg, Label label) {
  const uint8_t b = reg >> 3;
  switch (dice_.Below(4)) {
    case 0:
      Write(0x8d, reg, At(label));
      return;
    case 1:
      Write(0x8b, reg, OperandAt(program_.data.Table({&label, 1})));
      return;
    case 2:
      if (program_.layout.is_low) {
        code_.Byte(kRexEmpty | b);
        code_.Byte(0xb8 | (reg & 7));
        code_.Address(label, 4);
        return;
      }
      [[fallthrough]];
    default:
      code_.Byte(0x48 | b);
      code_.Byte(0xb8 | (reg & 7));
      code_.Address(label, 8);
      return;
  }
}

// ---- Operands in memory ----------------------------------------------------

Operand InsnWriter::OperandAt(uint64_t addr) {
  const bool is_low = program_.layout.is_low;
  switch (dice_.Below(12)) {
    case 0:
      if (is_low) {
        return AtAbsolute(addr);
      }
      [[fallthrough]];
    case 1:
    case 2:
      return Based(addr);
    case 3:
      return Indexed(addr);
    default: {
      Operand operand = At(addr);
      operand.has_short_address = is_low && dice_.OneIn(10);
      return operand;
    }
  }
}

Operand InsnWriter::Based(uint64_t addr) {
  const uint8_t base = FreeRegister();
  const uint8_t bytes = dice_.Pick<uint8_t>({0, 1, 4});
  const int64_t displacement =
      bytes == 0   ? 0
      : bytes == 1 ? static_cast<int8_t>(dice_.Next())
                   : static_cast<int64_t>(dice_.Below(0x2000)) - 0x1000;
  Operand operand = AtBase(base, displacement, bytes);
  uint64_t value = addr - static_cast<uint64_t>(displacement);
  operand.has_short_address = program_.layout.is_low && dice_.OneIn(8);
  if (operand.has_short_address) {
    value |= dice_.Next() << 32;
  }
  LoadAddress(base, value);
  return operand;
}

Operand InsnWriter::Indexed(uint64_t addr) {
  const uint8_t index = FreeRegister();
  const uint64_t count = dice_.Below(64);
  const auto scale_bits = static_cast<uint8_t>(dice_.Below(4));
  const uint64_t rest = addr - (count << scale_bits);
  Operand operand;
  if (program_.layout.is_low && dice_.OneIn(2)) {
    operand = AtAbsolute(rest);
  } else {
    const Reservation reservation(registers_, {index});
    operand = Based(rest);
  }
  LoadNumber(index, count);
  operand.index = index;
  operand.scale_bits = scale_bits;
  return operand;
}

// For instructions that do not access it.
Operand InsnWriter::Anywhere() {
  return At(code_.at() - 0x7fffff00 + dice_.Below(0xfffffe00));
}

Operand InsnWriter::StackOperand(int64_t displacement) {
  const bool is_short = displacement == static_cast<int8_t>(displacement);
  if (displacement == 0 && dice_.OneIn(2)) {
    return AtBase(kRsp, 0, 0);
  }
  return AtBase(kRsp, displacement, is_short && !dice_.OneIn(4) ? 1 : 4);
}

Operand InsnWriter::ScratchOperand(size_t bytes, bool is_aligned) {
  if (is_aligned || !dice_.OneIn(5)) {
    return OperandAt(program_.data.Scratch(bytes, is_aligned));
  }
  if (!registers_.keeps_stack() && dice_.OneIn(4)) {
    return StackOperand(static_cast<int64_t>(dice_.Below(0x100)));
  }
  return StackOperand(
      -static_cast<int64_t>(dice_.Between(bytes, kRedZoneBytes)));
}

// ---- What changes nothing --------------------------------------------------

void InsnWriter::Decorate(const Form& form, Insn& insn) {
  if (form.Has(kNoAccess) && insn.rm.kind == Operand::Kind::kRelative) {
    insn.rm.has_short_address |= dice_.OneIn(6);
  }
  if (dice_.OneIn(6)) {
    AddIdleRex(form, insn);
  }
  if (dice_.OneIn(6)) {
    AddIdlePrefix(form, insn);
  }
}

void InsnWriter::AddIdleRex(const Form& form, Insn& insn) {
  const bool names_bytes = form.Has(kByte) && insn.rex == 0 && !insn.wide &&
                           !insn.rm.NeedsRex() && insn.reg < 8;
  if (names_bytes || insn.scheme == Scheme::kVex2) {
    return;
  }
  if (insn.rm.kind == Operand::Kind::kRelative) {
    insn.rex |= static_cast<uint8_t>(dice_.Below(4));
  }
  if (insn.scheme != Scheme::kLegacy) {
    return;
  }
  insn.rex |= kRexEmpty;
  if (form.reg != kAnyReg && dice_.OneIn(2)) {
    insn.rex |= 4;
  }
  if (Length(insn) < kInsnBytesMax && dice_.OneIn(2)) {
    insn.prefixes.push_back(static_cast<uint8_t>(dice_.Between(0x40, 0x4f)));
  }
}

void InsnWriter::AddIdlePrefix(const Form& form, Insn& insn) {
  const size_t room = kInsnBytesMax - std::min(Length(insn), kInsnBytesMax);
  if (room == 0) {
    return;
  }
  const bool is_legacy = insn.scheme == Scheme::kLegacy;
  const bool is_sized = is_legacy && form.Has(kSized) && !form.Has(kNo16) &&
                        form.mandatory == 0 && form.map != OpcodeMap::k0F38;
  const bool is_locked =
      !insn.prefixes.empty() && insn.prefixes.front() == 0xf0;
  uint8_t prefix = dice_.Pick<uint8_t>({0x2e, 0x3e, 0x26, 0x36});
  size_t count =
      dice_.OneIn(4) ? room : dice_.Between(1, std::min<size_t>(room, 2));
  if (insn.rm.is_memory() && dice_.OneIn(3)) {
    prefix = 0x64;  // the base of FS is 0
  } else if (is_sized && insn.wide && dice_.OneIn(3)) {
    prefix = 0x66;
    count = 1;
  } else if (is_legacy && form.map == OpcodeMap::kOne && form.opcode < 0x40 &&
             !is_locked && dice_.OneIn(3)) {
    prefix = dice_.Pick<uint8_t>({0xf2, 0xf3});
    count = 1;
  }
  insn.prefixes.insert(insn.prefixes.begin(), count, prefix);
}

void InsnWriter::AddIdleRex64(Insn& insn) {
  if (!dice_.OneIn(4)) {
    return;
  }
  insn.rex |= dice_.Pick<uint8_t>({0x40, 0x48, 0x44, 0x4c});
  if (insn.rm.kind == Operand::Kind::kRelative) {
    insn.rex |= static_cast<uint8_t>(dice_.Below(4));
  }
  if (dice_.OneIn(4)) {
    insn.prefixes.push_back(static_cast<uint8_t>(dice_.Between(0x40, 0x4f)));
  }
}

}  // namespace clew::tracer::random_code
