#include "tests/recorder/tracer/random_code_transfers.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace clew::tracer::random_code {
namespace {

// What a short jump backward reaches, less its own bytes and those in front.
constexpr uint64_t kShortReach = 100;
// What follows the first short jump to one of them is shorter than its reach.
constexpr size_t kPendingHopsMax = 4;
constexpr uint64_t kHugeReturn = 0xffff;

}  // namespace

// ---- Single transfers ------------------------------------------------------

TransferWriter::TransferWriter(Program& program, InsnWriter& insns)
    : program_(program),
      dice_(program.dice),
      code_(program.code),
      insns_(insns) {}

// Those that change nothing there.
void TransferWriter::MaybePrefix(std::initializer_list<uint8_t> prefixes) {
  if (dice_.OneIn(4)) {
    code_.Byte(dice_.Pick(prefixes));
  }
}

// cmp byte budget, number
void TransferWriter::ChangeFlags() {
  const uint64_t number = dice_.Next();
  insns_.WriteWithImmediate(0x80, 7, insns_.OperandAt(program_.data.budget()),
                            false, 1, number);
}

void TransferWriter::Jump(Label target) {
  MaybePrefix({0xf2, 0x2e, 0x3e, 0x67, 0x48, 0x40, 0x4f});
  code_.Byte(0xe9);
  code_.Displacement(target, 4);
}

void TransferWriter::Call(Label target) {
  if (dice_.OneIn(8)) {
    code_.Bytes({0x66, 0x48});  // as compilers write calls of __tls_get_addr
  } else {
    MaybePrefix({0xf2, 0x2e, 0x3e, 0x67, 0x48, 0x40, 0x4f});
  }
  code_.Byte(0xe8);
  code_.Displacement(target, 4);
}

void TransferWriter::JumpIf(uint8_t condition, Label target) {
  MaybePrefix({0xf2, 0x2e, 0x3e, 0x48, 0x41});
  code_.Byte(0x0f);
  code_.Byte(0x80 | condition);
  code_.Displacement(target, 4);
}

void TransferWriter::ShortJump(Label target) {
  MaybePrefix({0xf2, 0x2e, 0x3e, 0x48});
  code_.Byte(0xeb);
  code_.Displacement(target, 1);
}

void TransferWriter::ShortJumpIf(uint8_t condition, Label target) {
  MaybePrefix({0xf2, 0x2e, 0x3e, 0x48});
  code_.Byte(0x70 | condition);
  code_.Displacement(target, 1);
}

void TransferWriter::Count(uint8_t kind, Label target, bool of_ecx) {
  if (of_ecx) {
    code_.Byte(0x67);
  }
  MaybePrefix({0x2e, 0x3e, 0x48});
  code_.Byte(0xe0 | kind);
  code_.Displacement(target, 1);
}

void TransferWriter::CountAtRandom(Label target) {
  const bool of_ecx = dice_.OneIn(3);
  Count(static_cast<uint8_t>(dice_.Below(4)), target, of_ecx);
}

// A register, a pointer in the data, or one in the red zone.
Operand TransferWriter::Pointer(Label target) {
  const uint64_t kind = dice_.Below(5);
  if (kind >= 2) {
    return insns_.OperandAt(program_.data.Table({&target, 1}));
  }
  const uint8_t reg = insns_.FreeRegister();
  insns_.LoadLabel(reg, target);
  if (kind == 1) {
    return InRegister(reg);
  }
  const Operand place =
      insns_.StackOperand(-static_cast<int64_t>(dice_.Between(8, 128)));
  insns_.Write(0x89, reg, place);
  return place;
}

void TransferWriter::WriteIndirect(uint8_t digit, const Operand& operand) {
  Insn insn;
  insn.opcode = 0xff;
  insn.reg = digit;
  insn.rm = operand;
  if (dice_.OneIn(3)) {
    insn.prefixes.push_back(dice_.Pick<uint8_t>({0x3e, 0xf2, 0x2e}));
  }
  if (operand.is_memory() && dice_.OneIn(8)) {
    insn.prefixes.push_back(0x64);
  }
  insns_.AddIdleRex64(insn);
  code_.Write(insn);
}

void TransferWriter::IndirectJump(Label target) { JumpTo(Pointer(target)); }
void TransferWriter::IndirectCall(Label target) { CallTo(Pointer(target)); }

void TransferWriter::Return(uint64_t popped_bytes) {
  MaybePrefix({0xf2, 0xf3, 0xf3, 0x2e, 0x48});
  if (popped_bytes == 0 && !dice_.OneIn(6)) {
    code_.Byte(0xc3);
    return;
  }
  code_.Byte(0xc2);
  code_.Number(popped_bytes, 2);
}

void TransferWriter::MoveStack(int64_t bytes) {
  insns_.Write(0x8d, kRsp, insns_.StackOperand(bytes));
}

void TransferWriter::PushAddress(Label label) {
  const uint64_t kind = dice_.Below(4);
  if (kind == 0 && program_.layout.is_low) {
    code_.Byte(0x68);
    code_.Address(label, 4);
    return;
  }
  if (kind == 1) {
    Insn insn;
    insn.opcode = 0xff;
    insn.reg = 6;
    insn.rm = insns_.OperandAt(program_.data.Table({&label, 1}));
    insns_.AddIdleRex64(insn);
    code_.Write(insn);
    return;
  }
  const uint8_t reg = insns_.FreeRegister();
  insns_.LoadLabel(reg, label);
  if (kind == 2) {
    MoveStack(-8);
    insns_.Write(0x89, reg, insns_.StackOperand(0));
    return;
  }
  code_.Byte(0x40 | reg >> 3);
  code_.Byte(0x50 | (reg & 7));
}

// ---- Out of a block --------------------------------------------------------

ExitWriter::ExitWriter(Program& program, InsnWriter& insns,
                       TransferWriter& transfers)
    : program_(program),
      dice_(program.dice),
      code_(program.code),
      insns_(insns),
      transfers_(transfers) {}

void ExitWriter::BeginBlock() {
  for (uint64_t i = dice_.Below(3); i > 0; --i) {
    WriteHop();
  }
  const Label block = program_.blocks[program_.block_number];
  code_.Bind(block);
  near_.push_back({block, program_.block_number});
}

void ExitWriter::WriteHop() {
  const size_t block = program_.NextBlockNumber();
  near_.push_back({code_.Here(), block});
  transfers_.Jump(program_.blocks[block]);
}

// A block or hop behind here, or a hop that will be in front.
Label ExitWriter::NearTarget() {
  if (!near_.empty() && dice_.OneIn(2)) {
    const size_t back = dice_.Below(std::min<size_t>(near_.size(), 4)) + 1;
    const Near& target = near_[near_.size() - back];
    const bool is_wanted =
        target.block > program_.block_number || dice_.OneIn(8);
    if (is_wanted &&
        code_.at() - code_.AddressOf(target.label).value_or(0) < kShortReach) {
      return target.label;
    }
  }
  pending_.push_back(code_.NewLabel());
  return pending_.back();
}

void ExitWriter::WritePendingHops() {
  for (const Label hop : pending_) {
    code_.Bind(hop);
    WriteHop();
  }
  pending_.clear();
}

void ExitWriter::WriteConditionals(bool is_last) {
  if (program_.IsLastBlock()) {
    return;
  }
  const uint64_t count = dice_.OneIn(3) ? dice_.Between(2, kPendingHopsMax) : 1;
  if (!is_last || dice_.OneIn(3)) {
    transfers_.ChangeFlags();
  }
  for (uint64_t i = 0; i < count; ++i) {
    WriteConditional();
  }
  if (!pending_.empty() && !is_last) {
    const Label behind = code_.NewLabel();
    transfers_.ShortJump(behind);
    WritePendingHops();
    code_.Bind(behind);
  }
}

void ExitWriter::WriteConditional() {
  const auto condition = static_cast<uint8_t>(dice_.Below(16));
  switch (dice_.Below(9)) {
    case 0:
    case 1:
    case 2:
      transfers_.JumpIf(condition, program_.NextBlock());
      break;
    case 3:
    case 4:
    case 5:
      transfers_.ShortJumpIf(condition, NearTarget());
      break;
    case 6:
    case 7:
      WriteCount();
      break;
    default:
      WriteEmptyConditional();
  }
}

// LOOP and so on, RCX is any number or small.
void ExitWriter::WriteCount() {
  if (!dice_.OneIn(3)) {
    const uint64_t above = dice_.OneIn(4) ? dice_.Next() << 32 : 0;
    insns_.LoadNumber(kRcx, dice_.Below(3) | above);
  }
  transfers_.CountAtRandom(NearTarget());
}

// To what follows, taken or not.
void ExitWriter::WriteEmptyConditional() {
  const auto condition = static_cast<uint8_t>(dice_.Below(16));
  const Label behind = code_.NewLabel();
  switch (dice_.Below(3)) {
    case 0:
      transfers_.JumpIf(condition, behind);
      break;
    case 1:
      transfers_.ShortJumpIf(condition, behind);
      break;
    default:
      transfers_.CountAtRandom(behind);
  }
  code_.Bind(behind);
}

void ExitWriter::WriteLast() {
  const Label target = program_.NextBlock();
  if (!pending_.empty()) {
    transfers_.Jump(target);
    WritePendingHops();
    return;
  }
  if (program_.IsLastBlock()) {
    WriteDispatch();
    return;
  }
  switch (dice_.Below(13)) {
    case 0:
      return transfers_.Jump(target);
    case 1:
      return WriteShortJump();
    case 2:
      return transfers_.Call(target);
    case 3:
    case 4:
      return transfers_.IndirectJump(target);
    case 5:
    case 6:
      return transfers_.IndirectCall(target);
    case 7:
    case 8:
      return WriteReturn(target);
    case 9:
      return WriteJumpToPushed(target);
    default:
      return WriteDispatch();
  }
}

void ExitWriter::WriteShortJump() {
  const Label hop = NearTarget();
  transfers_.ShortJump(hop);
  for (uint64_t i = dice_.Below(60); i > 0; --i) {
    code_.Byte(dice_.Next());
  }
  WritePendingHops();
}

void ExitWriter::WriteReturn(Label target) {
  uint64_t popped = 0;
  if (dice_.OneIn(3)) {
    popped = dice_.OneIn(4) ? dice_.Below(kHugeReturn + 1) : dice_.Below(64);
    transfers_.MoveStack(-static_cast<int64_t>(popped));
  }
  transfers_.PushAddress(target);
  const StackKeeper keeper(program_.registers);
  insns_.WriteSome(dice_.Below(3));
  transfers_.Return(popped);
}

// JMP or CALL through [rsp + bytes].
void ExitWriter::WriteJumpToPushed(Label target) {
  transfers_.PushAddress(target);
  int64_t above = 0;
  if (dice_.OneIn(2)) {
    above = static_cast<int64_t>(dice_.Below(300));
    transfers_.MoveStack(-above);
  }
  const Operand pushed = insns_.StackOperand(above);
  if (dice_.OneIn(2)) {
    transfers_.JumpTo(pushed);
  } else {
    transfers_.CallTo(pushed);
  }
}

// imul index, index, number; shr index, bits; and index, 7
void ExitWriter::WriteScramble(uint8_t index) {
  const Operand operand = InRegister(index);
  insns_.WriteWithImmediate(0x69, index, operand, true, 4, 0x1e3779b1);
  insns_.WriteWithImmediate(0xc1, 5, operand, true, 1, dice_.Between(5, 20));
  insns_.WriteWithImmediate(0x83, 4, operand, true, 1, 7);
}

// To any blocks, by the number of them that are left, through a table.
void ExitWriter::WriteDispatch() {
  std::array<Label, 8> labels;
  for (Label& label : labels) {
    label = program_.AnyBlock();
  }
  const uint64_t table = program_.data.Table(labels);
  const uint8_t index = insns_.FreeRegister();
  const Reservation reservation(program_.registers, {index});
  insns_.Write(0x8b, index, insns_.OperandAt(program_.data.budget()));
  WriteScramble(index);
  Operand entry = AtAbsolute(table);
  if (!program_.layout.is_low || dice_.OneIn(2)) {
    const uint8_t base = insns_.FreeRegister();
    const int64_t displacement = dice_.OneIn(2) ? 0x40 : 0x400;
    entry = AtBase(base, displacement, displacement == 0x40 ? 1 : 4);
    insns_.LoadAddress(base, table - static_cast<uint64_t>(displacement));
  }
  entry.index = index;
  entry.scale_bits = 3;
  if (dice_.OneIn(3)) {
    insns_.Write(0x8b, index, entry);
    entry = InRegister(index);
  }
  if (dice_.OneIn(3)) {
    transfers_.CallTo(entry);
  } else {
    transfers_.JumpTo(entry);
  }
}

}  // namespace clew::tracer::random_code
