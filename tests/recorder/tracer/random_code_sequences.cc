#include "tests/recorder/tracer/random_code_sequences.h"

#include <array>
#include <cstddef>
#include <span>

namespace clew::tracer::random_code {
namespace {

struct Short {
  size_t size = 0;
  std::array<uint8_t, 9> bytes = {};
  bool needs_v2 = false;
  bool needs_v3 = false;
};

constexpr Short kShorts[] = {
    {1, {0x98}},        // cwde
    {2, {0x48, 0x98}},  // cdqe
    {2, {0x66, 0x98}},  // cbw
    {1, {0x99}},        // cdq
    {2, {0x48, 0x99}},  // cqo
    {1, {0x9e}, true},  // sahf
    {1, {0x9e}, true},
    {1, {0x9f}, true},  // lahf
    {1, {0x9f}, true},
    {1, {0xf8}},        // clc
    {1, {0xf9}},        // stc
    {1, {0xf5}},        // cmc
    {1, {0xfc}},        // cld
    {1, {0x90}},        // nop
    {2, {0xf3, 0x90}},  // pause
    {2, {0x49, 0x90}},  // xchg r8, rax
    {2, {0x66, 0x90}},  // nops
    {5, {0x0f, 0x1f, 0x44, 0x00, 0x00}},
    {9, {0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00}},
    {4, {0xf3, 0x0f, 0x1e, 0xfa}},         // endbr64
    {3, {0x0f, 0xae, 0xe8}},               // lfence
    {3, {0x0f, 0xae, 0xf0}},               // mfence
    {1, {0x9b}},                           // fwait
    {2, {0x0f, 0x77}},                     // emms
    {3, {0xc5, 0xf8, 0x77}, false, true},  // vzeroupper
    {3, {0xc5, 0xfc, 0x77}, false, true},  // vzeroall
};

constexpr uint8_t RexB(uint8_t reg) { return reg >> 3; }

}  // namespace

SequenceWriter::SequenceWriter(Program& program, InsnWriter& insns)
    : program_(program),
      dice_(program.dice),
      code_(program.code),
      insns_(insns) {}

void SequenceWriter::WriteAny() {
  using Member = void (SequenceWriter::*)();
  constexpr Member kKinds[] = {
      &SequenceWriter::WriteShort,       &SequenceWriter::WriteShort,
      &SequenceWriter::WriteShort,       &SequenceWriter::WriteAccumulator,
      &SequenceWriter::WriteAccumulator, &SequenceWriter::WriteLoad,
      &SequenceWriter::WriteOneRegister, &SequenceWriter::WriteAbsolute,
      &SequenceWriter::WriteDivision,    &SequenceWriter::WriteBitScan,
      &SequenceWriter::WriteBitOfMemory, &SequenceWriter::WriteTableLookup,
      &SequenceWriter::WriteExchange,    &SequenceWriter::WriteString,
      &SequenceWriter::WriteString,      &SequenceWriter::WriteString,
      &SequenceWriter::WritePushAndPop,  &SequenceWriter::WritePushAndPop,
      &SequenceWriter::WritePushAndPop,  &SequenceWriter::WriteFrame,
      &SequenceWriter::WriteFloat,       &SequenceWriter::WriteVectorControl,
  };
  (this->*kKinds[dice_.Below(std::size(kKinds))])();
}

void SequenceWriter::WriteShort() {
  for (;;) {
    const Short& code = kShorts[dice_.Below(std::size(kShorts))];
    if ((code.needs_v2 && !program_.features.v2) ||
        (code.needs_v3 && !program_.features.v3)) {
      continue;
    }
    for (const uint8_t byte : std::span(code.bytes).first(code.size)) {
      code_.Byte(byte);
    }
    return;
  }
}

void SequenceWriter::OpcodeOfSize(uint8_t opcode, uint64_t size) {
  if (size == 2) {
    code_.Byte(0x66);
  } else if (size == 8) {
    code_.Byte(0x48);
  }
  code_.Byte(opcode);
}

// ADD and so on, TEST: AL, AX, EAX or RAX with an immediate.
void SequenceWriter::WriteAccumulator() {
  const uint64_t size = dice_.Pick<uint64_t>({1, 2, 4, 8});
  const uint64_t kind = dice_.Below(9);
  const auto opcode =
      static_cast<uint8_t>((kind == 8 ? 0xa8 : kind * 8 + 4) + (size > 1));
  OpcodeOfSize(opcode, size);
  code_.Number(dice_.Number(), size == 8 ? 4 : size);
}

// mov reg, immediate
void SequenceWriter::WriteLoad() {
  const uint8_t reg = insns_.FreeRegister();
  if (dice_.OneIn(3)) {
    code_.Byte(0x40 | RexB(reg));
    code_.Byte(0xb0 | (reg & 7));
    code_.Byte(dice_.Next());
    return;
  }
  insns_.LoadNumber(reg, dice_.Number());
}

// bswap reg; xchg reg, rax
void SequenceWriter::WriteOneRegister() {
  const uint8_t reg = insns_.FreeRegister();
  const uint8_t wide = dice_.Pick<uint8_t>({0, 8});
  code_.Byte(0x40 | wide | RexB(reg));
  if (dice_.OneIn(2)) {
    code_.Byte(0x0f);
    code_.Byte(0xc8 | (reg & 7));
  } else {
    code_.Byte(0x90 | (reg & 7));
  }
}

// MOV between AL, AX, EAX or RAX and an address of 64 bits.
void SequenceWriter::WriteAbsolute() {
  const uint64_t size = dice_.Pick<uint64_t>({1, 2, 4, 8});
  const uint64_t addr = program_.data.Scratch(8, false);
  const bool is_short = program_.layout.is_low && dice_.OneIn(4);
  if (is_short) {
    code_.Byte(0x67);
  }
  const bool stores = dice_.OneIn(2);
  OpcodeOfSize(static_cast<uint8_t>(0xa0 | (stores ? 2 : 0) | (size > 1)),
               size);
  code_.Number(addr, is_short ? 4 : 8);
}

void SequenceWriter::MakeOdd(const Operand& operand, bool wide) {
  insns_.WriteWithImmediate(0x83, 1, operand, wide, 1, dice_.Below(64) * 2 + 1);
}

// By a number that is not 0, of one that is not negative.
void SequenceWriter::WriteDivision() {
  const bool wide = dice_.OneIn(2);
  const bool is_byte = dice_.OneIn(4);
  const bool is_signed = dice_.OneIn(2);
  const Reservation reservation(program_.registers, {kRax, kRdx});
  const Operand divisor =
      is_byte || dice_.OneIn(2)
          ? insns_.OperandAt(program_.data.Scratch(8, false))
          : InRegister(insns_.FreeRegister());
  MakeOdd(divisor, wide);
  if (is_byte) {
    code_.Bytes({0x83, 0xe0, 0x7f});  // and eax, 127
  } else if (is_signed) {
    insns_.Write(0xd1, 5, InRegister(kRax), wide);  // shr rax, 1
    OpcodeOfSize(0x99, wide ? 8 : 4);               // cqo
  } else {
    code_.Bytes({0x31, 0xd2});  // xor edx, edx
  }
  insns_.Write(is_byte ? 0xf6 : 0xf7, is_signed ? 7 : 6, divisor, wide);
}

// BSF, BSR of a number that is not 0.
void SequenceWriter::WriteBitScan() {
  const uint8_t reg = insns_.FreeRegister();
  const Operand source = dice_.OneIn(2)
                             ? insns_.OperandAt(program_.data.Scratch(8, false))
                             : InRegister(insns_.FreeRegister());
  MakeOdd(source, true);
  Insn insn;
  insn.map = OpcodeMap::k0F;
  insn.opcode = dice_.Pick<uint8_t>({0xbc, 0xbd});
  insn.wide = true;
  insn.reg = reg;
  insn.rm = source;
  code_.Write(insn);
}

// BT, BTS, BTR, BTC of a bit that may lie outside the operand.
void SequenceWriter::WriteBitOfMemory() {
  const uint8_t reg = insns_.FreeRegister();
  const Reservation reservation(program_.registers, {reg});
  insns_.LoadNumber(reg, dice_.Below(512) - 256);
  Insn insn;
  insn.map = OpcodeMap::k0F;
  insn.opcode = dice_.Pick<uint8_t>({0xa3, 0xab, 0xb3, 0xbb});
  insn.wide = true;
  insn.reg = reg;
  insn.rm = insns_.OperandAt(program_.data.ScratchMiddle());
  code_.Write(insn);
}

// xlat
void SequenceWriter::WriteTableLookup() {
  insns_.LoadAddress(kRbx, program_.data.ScratchMiddle());
  code_.Byte(0xd7);
}

// CMPXCHG, CMPXCHG8B, CMPXCHG16B that find what they expect.
void SequenceWriter::WriteExchange() {
  const bool is_pair = dice_.OneIn(2);
  const bool wide = !is_pair || program_.features.v2;
  const uint64_t addr = program_.data.Scratch(is_pair && wide ? 16 : 8, true);
  insns_.Write(0x8b, kRax, At(addr), wide);
  if (is_pair) {
    insns_.Write(0x8b, kRdx, At(addr + (wide ? 8 : 4)), wide);
  }
  Insn insn;
  insn.prefixes = {0xf0};
  insn.map = OpcodeMap::k0F;
  insn.opcode = is_pair ? 0xc7 : 0xb1;
  insn.wide = wide;
  insn.reg = is_pair ? 1 : static_cast<uint8_t>(dice_.Below(16));
  insn.rm = At(addr);
  code_.Write(insn);
}

// MOVS, CMPS, STOS, LODS, SCAS, forward or backward, repeated or not.
void SequenceWriter::WriteString() {
  const uint8_t repeat = dice_.Pick<uint8_t>({0, 0xf2, 0xf3, 0xf3});
  const uint64_t size = dice_.Pick<uint64_t>({1, 1, 2, 4, 8, 8});
  const auto opcode = static_cast<uint8_t>(
      dice_.Pick({0xa4, 0xa4, 0xa6, 0xaa, 0xac, 0xae}) + (size > 1));
  const bool is_backward = dice_.OneIn(3);
  const Reservation reservation(program_.registers, {kRcx, kRsi, kRdi});
  const uint64_t source = program_.data.ScratchMiddle();
  insns_.LoadAddress(kRsi, source);
  insns_.LoadAddress(kRdi, dice_.OneIn(4) ? source + dice_.Below(9)
                                          : program_.data.ScratchMiddle());
  insns_.LoadNumber(kRcx, dice_.OneIn(3) ? 0 : dice_.Between(1, 12));
  if (is_backward) {
    code_.Byte(0xfd);  // std
  }
  insns_.WriteSome(dice_.Below(3));
  if (dice_.OneIn(6)) {
    code_.Byte(0x64);
  }
  if (program_.layout.is_low && dice_.OneIn(6)) {
    code_.Byte(0x67);
  }
  if (repeat != 0) {
    code_.Byte(repeat);
  }
  OpcodeOfSize(opcode, size);
  if (is_backward) {
    code_.Byte(0xfc);  // cld
  }
}

void SequenceWriter::Push(bool is_half) {
  if (is_half) {
    code_.Byte(0x66);
  }
  const auto reg = static_cast<uint8_t>(dice_.Below(16));
  switch (dice_.Below(5)) {
    case 0:
      code_.Byte(0x6a);
      code_.Byte(dice_.Next());
      return;
    case 1:
      code_.Byte(0x68);
      code_.Number(dice_.Number(), is_half ? 2 : 4);
      return;
    default:
      if (reg >= 8 || dice_.OneIn(6)) {
        code_.Byte(0x40 | RexB(reg));
      }
      code_.Byte(0x50 | (reg & 7));
      return;
  }
}

void SequenceWriter::Pop(bool is_half) {
  const uint8_t reg = insns_.FreeRegister();
  if (is_half) {
    code_.Byte(0x66);
  }
  if (reg >= 8 || dice_.OneIn(6)) {
    code_.Byte(0x40 | RexB(reg));
  }
  code_.Byte(0x58 | (reg & 7));
}

void SequenceWriter::WritePush() { Push(false); }

void SequenceWriter::WritePushAndPop() {
  const bool is_half = dice_.OneIn(6);
  const bool is_unbalanced =
      !program_.registers.keeps_stack() && dice_.OneIn(5);
  const bool pushes = !is_unbalanced || dice_.OneIn(2);
  // PUSH and POP of what ModRM names.
  const auto write = [&](uint8_t opcode, uint8_t digit) {
    Insn insn;
    insn.opcode = opcode;
    insn.reg = digit;
    insn.rm = dice_.OneIn(4)
                  ? InRegister(insns_.FreeRegister())
                  : insns_.OperandAt(program_.data.Scratch(8, false));
    if (is_half) {
      insn.prefixes.push_back(0x66);
    } else {
      insns_.AddIdleRex64(insn);
    }
    code_.Write(insn);
  };
  if (pushes && dice_.OneIn(2)) {
    write(0xff, 6);
  } else if (pushes) {
    Push(is_half);
  }
  insns_.WriteSome(dice_.Below(3));
  if (is_unbalanced && pushes) {
    return;
  }
  if (dice_.OneIn(2)) {
    write(0x8f, 0);
  } else {
    Pop(is_half);
  }
}

// enter bytes, 0; leave
void SequenceWriter::WriteFrame() {
  const Reservation reservation(program_.registers, {kRbp});
  code_.Byte(0xc8);
  code_.Number(dice_.Below(100), 2);
  code_.Byte(0);
  insns_.WriteSome(dice_.Below(3));
  code_.Byte(0xc9);
}

// FLD, FILD; FADD, FMUL; FSTP, FISTP.
void SequenceWriter::WriteFloat() {
  struct Code {
    uint8_t opcode;
    uint8_t digit;
  };
  const auto write = [this](Code code) {
    insns_.Write(code.opcode, code.digit,
                 insns_.OperandAt(program_.data.Scratch(10, false)), false);
  };
  write(dice_.Pick<Code>(
      {{0xd9, 0}, {0xdd, 0}, {0xdb, 5}, {0xdf, 5}, {0xdb, 0}}));
  if (dice_.OneIn(2)) {
    write(dice_.Pick<Code>({{0xd8, 0}, {0xdc, 1}, {0xdc, 4}, {0xda, 0}}));
  }
  write(dice_.Pick<Code>(
      {{0xd9, 3}, {0xdd, 3}, {0xdb, 7}, {0xdf, 7}, {0xdb, 3}}));
}

// STMXCSR, LDMXCSR of what it stored.
void SequenceWriter::WriteVectorControl() {
  Insn insn;
  insn.map = OpcodeMap::k0F;
  insn.opcode = 0xae;
  insn.reg = 3;
  insn.rm = insns_.OperandAt(program_.data.Scratch(4, false));
  code_.Write(insn);
  insn.reg = 2;
  code_.Write(insn);
}

}  // namespace clew::tracer::random_code
