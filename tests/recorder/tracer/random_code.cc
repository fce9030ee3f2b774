#include "tests/recorder/tracer/random_code.h"

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include "common/x86/page.h"
#include "tests/recorder/tracer/code_writer.h"
#include "tests/recorder/tracer/random_code_detours.h"
#include "tests/recorder/tracer/random_code_insns.h"
#include "tests/recorder/tracer/random_code_program.h"
#include "tests/recorder/tracer/random_code_sequences.h"
#include "tests/recorder/tracer/random_code_transfers.h"

namespace clew::tracer {
namespace random_code {
namespace {

constexpr uint64_t kBlocksMin = 10;
constexpr uint64_t kBlocksMax = 60;
constexpr uint64_t kFunctionsMax = 6;
// What the program may push and pop in all is much less.
constexpr int64_t kStackBytes = 1 << 20;
constexpr uint64_t kExitGroup = 231;
constexpr uint8_t kIfNegative = 8;

class Generator {
 public:
  explicit Generator(uint64_t seed)
      : program_(seed),
        insns_(program_),
        sequences_(program_, insns_),
        transfers_(program_, insns_),
        exits_(program_, insns_, transfers_),
        functions_(dice_.Below(kFunctionsMax + 1)),
        detours_(program_, insns_, sequences_, transfers_, functions_),
        fills_with_traps_(dice_.OneIn(2)) {}

  // Returns the code; entry() is where it starts.
  std::vector<uint8_t> Write() {
    const uint64_t blocks = dice_.Between(kBlocksMin, kBlocksMax);
    for (uint64_t i = 0; i < blocks; ++i) {
      program_.blocks.push_back(code_.NewLabel());
    }
    WriteParts();
    program_.data.Finish(code_);
    return code_.Finish();
  }
  uint64_t entry() const { return entry_; }
  uint64_t code_addr() const { return program_.layout.code; }
  const Data& data() const { return program_.data; }

 private:
  enum class Kind : uint8_t { kEntry, kExit, kBlock, kFunction };
  struct Part {
    Kind kind = Kind::kBlock;
    size_t number = 0;
  };

  // In any order, with gaps.
  void WriteParts() {
    std::vector<Part> parts = {{Kind::kEntry}, {Kind::kExit}};
    for (size_t i = 0; i < program_.blocks.size(); ++i) {
      parts.push_back({Kind::kBlock, i});
    }
    for (size_t i = 0; i < functions_; ++i) {
      parts.push_back({Kind::kFunction, i});
    }
    for (size_t i = parts.size() - 1; i > 0; --i) {
      std::swap(parts[i], parts[dice_.Below(i + 1)]);
    }
    for (const Part& part : parts) {
      WriteGap();
      WritePart(part);
    }
  }

  void WritePart(const Part& part) {
    switch (part.kind) {
      case Kind::kEntry:
        return WriteEntry();
      case Kind::kExit:
        return WriteExit();
      case Kind::kBlock:
        program_.block_number = part.number;
        return WriteBlock();
      case Kind::kFunction:
        return detours_.WriteFunction(part.number);
    }
  }

  void WriteGap() {
    const uint64_t to_next_page = kPageBytes - code_.at() % kPageBytes;
    switch (dice_.Below(8)) {
      case 0:
        return Fill(dice_.Below(kPageBytes));
      case 1:
      case 2:  // what follows crosses into the next page, probably
        return Fill(to_next_page - std::min(to_next_page, dice_.Below(150)));
      case 3:
        return WriteIsland();
      case 4:
        return Fill(dice_.Below(64));
      default:
        return;
    }
  }

  void Fill(uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; ++i) {
      code_.Byte(fills_with_traps_ ? 0xcc : dice_.Next());
    }
  }

  void WriteIsland() {
    Fill((0 - code_.at()) % kIslandBytes);
    program_.data.AddIsland(code_.at());
    Fill(kIslandBytes);
  }

  void WriteEntry() {
    entry_ = code_.at();
    for (uint8_t reg = 0; reg < 16; ++reg) {
      Insn insn;  // movdqu reg, [scratch]
      insn.mandatory = 0xf3;
      insn.map = OpcodeMap::k0F;
      insn.opcode = 0x6f;
      insn.reg = reg;
      insn.rm = At(program_.data.Scratch(16, false));
      code_.Write(insn);
    }
    WriteMasks();
    for (uint8_t reg = 0; reg < 16; ++reg) {
      if (reg != kRsp) {
        insns_.LoadNumber(reg, dice_.Number());
      }
    }
    if (program_.layout.has_kernels_stack) {
      transfers_.MoveStack(-kStackBytes);
      insns_.Write(0x89, kRsp, At(program_.data.stack_pointer()));
    } else {
      insns_.Write(0x8b, kRsp, At(program_.data.stack_pointer()));
    }
    transfers_.Jump(program_.AnyBlock());
  }

  void WriteMasks() {
    for (uint8_t mask = 1; program_.features.avx512 && mask < 8; ++mask) {
      Insn insn;  // kmovw mask, eax
      insn.scheme = Scheme::kVex2;
      insn.map = OpcodeMap::k0F;
      insn.opcode = 0x92;
      insn.reg = mask;
      insn.rm = InRegister(kRax);
      insns_.LoadNumber(kRax, dice_.Next());
      code_.Write(insn);
    }
  }

  void WriteExit() {
    code_.Bind(program_.exit);
    insns_.LoadNumber(kRax, kExitGroup);
    insns_.LoadNumber(kRdi, 0);
    code_.Bytes({0x0f, 0x05, 0x0f, 0x0b});  // syscall; ud2
  }

  void WriteBlock() {
    exits_.BeginBlock();
    if (dice_.OneIn(3)) {
      WriteQuietBudgetCheck();
    } else {
      WriteBudgetCheck();
    }
    if (dice_.OneIn(4)) {
      WriteStackReset();
    }
    const int64_t shift =
        dice_.OneIn(4) ? static_cast<int64_t>(dice_.Below(16)) : 0;
    if (shift != 0) {
      transfers_.MoveStack(-shift);
    }
    const uint64_t items = dice_.OneIn(40) ? 60 : dice_.Between(1, 12);
    for (uint64_t i = 0; i < items; ++i) {
      WriteItem();
    }
    if (shift != 0) {
      transfers_.MoveStack(shift);
    }
    if (dice_.OneIn(2)) {
      exits_.WriteConditionals(true);
    }
    exits_.WriteLast();
  }

  void WriteItem() {
    const uint64_t kind = dice_.Below(20);
    if (kind < 12) {
      insns_.WriteAny();
    } else if (kind < 15) {
      sequences_.WriteAny();
    } else if (kind < 18) {
      detours_.WriteAny();
    } else {
      exits_.WriteConditionals(false);
    }
  }

  // dec budget; js exit
  void WriteBudgetCheck() {
    Insn insn;
    if (dice_.OneIn(6)) {
      insn.prefixes.push_back(0xf0);
    }
    insn.opcode = 0xff;
    insn.reg = 1;
    insn.wide = true;
    insn.rm = insns_.OperandAt(program_.data.budget());
    code_.Write(insn);
    transfers_.JumpIf(kIfNegative, program_.exit);
  }

  // Changes RCX, and no flag.
  void WriteQuietBudgetCheck() {
    const Operand budget = At(program_.data.budget());
    const Label ends = code_.NewLabel();
    const Label goes_on = code_.NewLabel();
    insns_.Write(0x8b, kRcx, budget);
    transfers_.Count(3, ends, false);  // jrcxz
    insns_.Write(0x8d, kRcx, AtBase(kRcx, -1, 1));
    insns_.Write(0x89, kRcx, budget);
    transfers_.ShortJump(goes_on);
    code_.Bind(ends);
    transfers_.Jump(program_.exit);
    code_.Bind(goes_on);
  }

  void WriteStackReset() {
    if (program_.layout.has_kernels_stack || dice_.OneIn(2)) {
      insns_.Write(0x8b, kRsp, insns_.OperandAt(program_.data.stack_pointer()));
    } else {
      insns_.LoadAddress(kRsp, program_.data.stack_middle());
    }
  }

  Program program_;
  Dice& dice_ = program_.dice;
  CodeWriter& code_ = program_.code;
  InsnWriter insns_;
  SequenceWriter sequences_;
  TransferWriter transfers_;
  ExitWriter exits_;
  const size_t functions_;
  DetourWriter detours_;
  const bool fills_with_traps_;
  uint64_t entry_ = 0;
};

// ---- The file --------------------------------------------------------------

template <class T>
void Store(std::vector<uint8_t>& file, size_t offset, const T& value) {
  std::memcpy(&file[offset], &value, sizeof value);
}

// Appends a segment to the file, at a multiple of a page.
Elf64_Phdr Append(std::vector<uint8_t>& file, std::span<const uint8_t> bytes,
                  uint64_t addr, uint64_t memory_bytes) {
  file.resize(RoundUpToPage(file.size()));
  Elf64_Phdr header = {};
  header.p_type = PT_LOAD;
  header.p_flags = PF_R | PF_W | PF_X;
  header.p_offset = file.size();
  header.p_vaddr = addr;
  header.p_paddr = addr;
  header.p_filesz = bytes.size();
  header.p_memsz = memory_bytes;
  header.p_align = kPageBytes;
  file.insert(file.end(), bytes.begin(), bytes.end());
  return header;
}

Elf64_Phdr Append(std::vector<uint8_t>& file, const DataSegment& data) {
  Elf64_Phdr header = Append(file, data.bytes, data.addr, data.memory_bytes);
  header.p_flags = PF_R | PF_W;
  return header;
}

Elf64_Ehdr FileHeader(uint64_t entry, size_t segments) {
  Elf64_Ehdr header = {};
  constexpr uint8_t kIdent[] = {ELFMAG0,    ELFMAG1,     ELFMAG2,   ELFMAG3,
                                ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
  std::ranges::copy(kIdent, header.e_ident);
  header.e_type = ET_EXEC;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_entry = entry;
  header.e_phoff = sizeof header;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = static_cast<uint16_t>(segments);
  return header;
}

}  // namespace
}  // namespace random_code

std::vector<uint8_t> RandomProgram(uint64_t seed) {
  using random_code::Append;
  random_code::Generator generator(seed);
  const std::vector<uint8_t> code = generator.Write();
  std::vector<Elf64_Phdr> segments;
  std::vector<uint8_t> file(kPageBytes);
  segments.push_back(Append(file, generator.data().near_data()));
  segments.push_back(Append(file, code, generator.code_addr(), code.size()));
  segments.push_back(Append(file, generator.data().far_data()));
  Elf64_Phdr stack = {};
  stack.p_type = PT_GNU_STACK;
  stack.p_flags = PF_R | PF_W;
  segments.push_back(stack);
  random_code::Store(
      file, 0, random_code::FileHeader(generator.entry(), segments.size()));
  for (size_t i = 0; i < segments.size(); ++i) {
    random_code::Store(file, sizeof(Elf64_Ehdr) + i * sizeof segments[i],
                       segments[i]);
  }
  return file;
}

}  // namespace clew::tracer
