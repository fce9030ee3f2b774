#include "tests/recorder/tracer/random_code_detours.h"

#include <iterator>

namespace clew::tracer::random_code {
namespace {

// As many instructions of InsnWriter as a displacement of a byte passes over.
constexpr uint64_t kShortInsns = 3;

constexpr uint64_t kNoSystemCall = 0x4fff;
constexpr uint64_t kSchedYield = 24;

}  // namespace

DetourWriter::DetourWriter(Program& program, InsnWriter& insns,
                           SequenceWriter& sequences, TransferWriter& transfers,
                           size_t functions)
    : program_(program),
      dice_(program.dice),
      code_(program.code),
      insns_(insns),
      sequences_(sequences),
      transfers_(transfers) {
  for (size_t i = 0; i < functions; ++i) {
    functions_.push_back(
        {code_.NewLabel(), dice_.OneIn(3) ? 8 * dice_.Below(4) : 0});
  }
}

void DetourWriter::WriteAny() {
  using Member = void (DetourWriter::*)();
  constexpr Member kKinds[] = {
      &DetourWriter::WriteSkip,          &DetourWriter::WriteSkip,
      &DetourWriter::WriteSkip,          &DetourWriter::WriteBackAndForth,
      &DetourWriter::WriteCountedLoop,   &DetourWriter::WriteCountedLoop,
      &DetourWriter::WriteDecrementLoop, &DetourWriter::WriteOwnTarget,
      &DetourWriter::WriteCall,          &DetourWriter::WriteCall,
      &DetourWriter::WriteCall,          &DetourWriter::WriteCall,
      &DetourWriter::WriteOwnAddress,    &DetourWriter::WriteSystemCall,
      &DetourWriter::WriteSkippedLock,   &DetourWriter::WriteOverlap,
  };
  (this->*kKinds[dice_.Below(std::size(kKinds))])();
}

void DetourWriter::WriteJumpIf(Label target, bool is_short) {
  const auto condition = static_cast<uint8_t>(dice_.Below(16));
  if (!is_short) {
    transfers_.JumpIf(condition, target);
  } else if (dice_.OneIn(5)) {
    transfers_.CountAtRandom(target);
  } else {
    transfers_.ShortJumpIf(condition, target);
  }
}

void DetourWriter::WriteJump(Label target, bool is_short) {
  if (is_short) {
    transfers_.ShortJump(target);
  } else {
    transfers_.Jump(target);
  }
}

// Over nothing, or some instructions.
void DetourWriter::WriteSkip() {
  const Label behind = code_.NewLabel();
  const bool is_short = dice_.OneIn(2);
  if (dice_.OneIn(2)) {
    transfers_.ChangeFlags();
  }
  if (dice_.OneIn(4)) {
    WriteJump(behind, is_short);
  } else {
    WriteJumpIf(behind, is_short);
  }
  insns_.WriteSome(dice_.Below(kShortInsns + 1));
  code_.Bind(behind);
}

// Forward, back, and forward again.
void DetourWriter::WriteBackAndForth() {
  const Label second = code_.NewLabel();
  const Label end = code_.NewLabel();
  WriteJump(second, dice_.OneIn(2));
  const Label first = code_.Here();
  insns_.WriteAny();
  WriteJump(end, dice_.OneIn(2));
  code_.Bind(second);
  insns_.WriteAny();
  WriteJump(first, dice_.OneIn(2));
  code_.Bind(end);
}

// LOOP, LOOPE, LOOPNE.
void DetourWriter::WriteCountedLoop() {
  const Reservation reservation(program_.registers, {kRcx});
  const bool of_ecx = dice_.OneIn(3);
  const uint64_t above = of_ecx && dice_.OneIn(2) ? dice_.Next() << 32 : 0;
  insns_.LoadNumber(kRcx, dice_.Between(1, 5) | above);
  const Label again = code_.Here();
  insns_.WriteSome(dice_.Below(kShortInsns));
  transfers_.Count(static_cast<uint8_t>(dice_.Below(3)), again, of_ecx);
}

// DEC and a conditional jump, of either size. RAX and RDX are changed by
// multiplications.
void DetourWriter::WriteDecrementLoop() {
  const uint8_t counter = dice_.Pick<uint8_t>(
      {kRcx, kRbx, kRbp, kRsi, kRdi, 8, 9, 10, 11, 12, 13, 14, 15});
  const Reservation reservation(program_.registers, {counter});
  insns_.LoadNumber(counter, dice_.Between(1, 5));
  const Label again = code_.Here();
  insns_.WriteSome(dice_.Below(kShortInsns));
  insns_.Write(0xff, 1, InRegister(counter));
  const uint8_t condition = dice_.Pick<uint8_t>({0x5, 0xf});  // not 0, above 0
  if (dice_.OneIn(2)) {
    transfers_.ShortJumpIf(condition, again);
  } else {
    transfers_.JumpIf(condition, again);
  }
}

// A branch whose target it is itself.
void DetourWriter::WriteOwnTarget() {
  insns_.LoadNumber(kRcx, dice_.Between(1, 5));
  const Label again = code_.Here();
  transfers_.Count(static_cast<uint8_t>(dice_.Below(4)), again, false);
}

void DetourWriter::WriteCall() {
  const size_t callable = functions_.size() - first_callable_;
  if (callable == 0) {
    return;
  }
  const Function& function =
      functions_[first_callable_ + dice_.Below(callable)];
  for (uint64_t i = 0; i < function.argument_bytes; i += 8) {
    sequences_.WritePush();
  }
  WriteTransferToFunction(function);
}

void DetourWriter::WriteTransferToFunction(const Function& function) {
  if (dice_.OneIn(2)) {
    transfers_.Call(function.entry);
    return;
  }
  if (!dice_.OneIn(4)) {
    transfers_.IndirectCall(function.entry);
    return;
  }
  // A call by other means.
  const Label behind = code_.NewLabel();
  transfers_.PushAddress(behind);
  if (dice_.OneIn(2)) {
    transfers_.Jump(function.entry);
  } else {
    transfers_.IndirectJump(function.entry);
  }
  code_.Bind(behind);
}

void DetourWriter::WriteFunction(size_t number) {
  const Function& function = functions_[number];
  first_callable_ = number + 1;
  const StackKeeper keeper(program_.registers);
  code_.Bind(function.entry);
  for (uint64_t i = dice_.Below(5); i > 0; --i) {
    if (dice_.OneIn(3)) {
      sequences_.WriteAny();
    } else {
      insns_.WriteAny();
    }
  }
  if (dice_.OneIn(2)) {
    WriteAny();
  }
  insns_.WriteSome(dice_.Below(2));
  transfers_.Return(function.argument_bytes);
  first_callable_ = 0;
}

// CALL of what follows, perhaps behind data; the address is popped.
void DetourWriter::WriteOwnAddress() {
  const Label behind = code_.NewLabel();
  transfers_.Call(behind);
  if (dice_.OneIn(3)) {
    for (uint64_t i = dice_.Below(40); i > 0; --i) {
      code_.Byte(dice_.Next());
    }
  }
  code_.Bind(behind);
  if (dice_.OneIn(4)) {
    transfers_.MoveStack(8);
    return;
  }
  const uint8_t reg = insns_.FreeRegister();
  code_.Byte(0x40 | reg >> 3);
  code_.Byte(0x58 | (reg & 7));
}

// R11 is RFLAGS then, with the trap flag if it is set: it is overwritten at
// once.
void DetourWriter::WriteSystemCall() {
  insns_.LoadNumber(kRax, dice_.Pick({kNoSystemCall, kSchedYield}));
  code_.Bytes({0x0f, 0x05});
  switch (dice_.Below(5)) {
    case 0:
      insns_.LoadNumber(kR11, dice_.Number());
      break;
    case 1:
      insns_.Write(0x8d, kR11, At(program_.data.Scratch(8, false)));
      break;
    case 2:
      insns_.Write(0x8b, kR11, At(program_.data.Scratch(8, false)));
      break;
    case 3:
      insns_.Write(0x89, kRcx, InRegister(kR11));
      break;
    default:
      code_.Bytes({0x49, 0xc7, 0xc3, 2, 2, 0, 0});  // mov r11, 0x202
  }
}

// A conditional jump over the LOCK of an instruction, as libraries have it.
void DetourWriter::WriteSkippedLock() {
  Insn insn;
  insn.map = OpcodeMap::k0F;
  insn.opcode = dice_.Pick<uint8_t>({0xb1, 0xc1});
  insn.wide = dice_.OneIn(2);
  insn.reg = insns_.FreeRegister();
  insn.rm = At(program_.data.Scratch(8, true));
  const Label behind = code_.NewLabel();
  WriteJumpIf(behind, true);
  code_.Byte(0xf0);
  code_.Bind(behind);
  code_.Write(insn);
}

// A jump into a number: add eax, ecx; jmp behind the number.
void DetourWriter::WriteOverlap() {
  const uint8_t reg = insns_.FreeRegister();
  const Label inside = code_.NewLabel();
  WriteJumpIf(inside, dice_.OneIn(2));
  code_.Bytes({static_cast<uint8_t>(0x48 | reg >> 3),
               static_cast<uint8_t>(0xb8 | (reg & 7))});
  const auto skipped = static_cast<uint8_t>(dice_.Below(5));
  for (int i = skipped; i > 0; --i) {
    code_.Byte(dice_.Next());
  }
  code_.Bind(inside);
  const auto rest = static_cast<uint8_t>(8 - skipped - 4);
  code_.Bytes({0x01, 0xc8, 0xeb, rest});
  for (int i = rest; i > 0; --i) {
    code_.Byte(dice_.Next());
  }
}

}  // namespace clew::tracer::random_code
