#include "tests/recorder/pt_encoder/random_program.h"

#include <cstddef>
#include <initializer_list>

#include "common/check.h"

namespace clew::recorder {
namespace {

// Each block is kBlockBytes long at most, so that addresses of blocks are known
// before they are filled; the rest is never executed.
constexpr uint64_t kBlockBytes = 48;

enum class Ending {
  kConditional,
  kJump,
  kCall,
  kIndirectJump,
  kIndirectCall,
  kReturn,
  kSyscall,
  kTrap,
  kLoop,
  kCallNext,
  kCount,
};

// Appends instructions of one region.
class Assembler {
 public:
  explicit Assembler(CodeRegion& region) : region_(region) {}

  uint64_t here() const { return region_.addr + region_.bytes.size(); }
  void Emit(std::initializer_list<uint8_t> bytes) {
    region_.bytes.insert(region_.bytes.end(), bytes);
  }
  void EmitRel32(std::initializer_list<uint8_t> opcode, uint64_t target) {
    Emit(opcode);
    const uint64_t rel = target - (here() + 4);
    for (int i = 0; i < 4; ++i) {
      region_.bytes.push_back(static_cast<uint8_t>(rel >> (8 * i)));
    }
  }

 private:
  CodeRegion& region_;
};

void EmitBody(Assembler& code, Random& random) {
  for (uint64_t i = random.Below(5); i > 0; --i) {
    switch (random.Below(4)) {
      case 0:
        code.Emit({0x90});
        break;
      case 1:
        code.Emit({0x48, 0x89, 0xd8});  // mov %rbx,%rax
        break;
      case 2:
        code.Emit({0xf3, 0xa4});  // rep movsb
        break;
      default:
        code.Emit({0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00});  // nopw
        break;
    }
  }
}

// `forward` and `any` are starts of blocks.
void EmitEnding(Assembler& code, Ending ending, uint64_t start,
                uint64_t forward, uint64_t any, Random& random) {
  switch (ending) {
    case Ending::kConditional:
      code.EmitRel32({0x0f, static_cast<uint8_t>(0x80 + random.Below(16))},
                     any);
      break;
    case Ending::kJump:
      code.EmitRel32({0xe9}, forward);
      break;
    case Ending::kCall:
      code.EmitRel32({0xe8}, forward);
      break;
    case Ending::kIndirectJump:
      code.Emit({0xff, 0xe0});
      break;
    case Ending::kIndirectCall:
      code.Emit({0x41, 0xff, 0xd3});
      break;
    case Ending::kReturn:
      code.Emit({0xc3});
      break;
    case Ending::kSyscall:
      code.Emit({0x0f, 0x05});
      break;
    case Ending::kTrap:
      code.Emit({0xcc});
      break;
    case Ending::kCallNext:
      code.EmitRel32({0xe8}, code.here() + 5);
      break;
    default:
      code.Emit({0xe2, static_cast<uint8_t>(start - (code.here() + 2))});
      break;
  }
}

}  // namespace

RandomProgram::RandomProgram(Random& random, int blocks_per_region) {
  for (const uint64_t addr :
       {uint64_t{0x401000}, uint64_t{0x418000}, uint64_t{0x7f5512340000}}) {
    AddRegion(random, addr, blocks_per_region);
  }
}

void RandomProgram::AddRegion(Random& random, uint64_t addr, int blocks) {
  CodeRegion region{addr, {}};
  Assembler code(region);
  const auto block_count = static_cast<uint64_t>(blocks);
  const auto start_of = [&](uint64_t block) {
    return addr + block * kBlockBytes;
  };
  for (uint64_t block = 0; block < block_count; ++block) {
    starts_.push_back(start_of(block));
    EmitBody(code, random);
    auto ending = static_cast<Ending>(
        random.Below(static_cast<uint64_t>(Ending::kCount)));
    const uint64_t forward = block + 1 + random.Below(block_count - block);
    if (forward >= block_count) {
      ending = Ending::kIndirectJump;  // nothing lies further on
    }
    EmitEnding(code, ending, start_of(block), start_of(forward),
               start_of(random.Below(block_count)), random);
    // What a branch that is not taken, or a return, comes back to.
    code.Emit({0xff, 0xe0});
    region.bytes.resize((block + 1) * kBlockBytes, 0x06);  // no instruction
  }
  image_.push_back(region);
  for (uint64_t block = 0; block < block_count; ++block) {
    for (uint64_t ip = start_of(block); ip < start_of(block + 1);) {
      const size_t offset = ip - addr;
      if (region.bytes[offset] == 0x06) {
        break;
      }
      const std::optional<IptInsn> ipt = ClassifyWithIpt({region}, ip);
      CLEW_CHECK(ipt, "libipt knows no instruction at {:#x}", ip);
      const auto insn = x86::ClassifyBranch(
          std::span(region.bytes).subspan(offset, ipt->size));
      const uint64_t next = ip + ipt->size;
      insns_[ip] = {insn.branch_class, next,
                    insn.DirectTarget(TraceeAddr(next)).as_int()};
      ip = next;
    }
  }
}

namespace {

// One run of Execute.
class Runner {
 public:
  Runner(const RandomProgram& program, Random& random, const ExecutionMix& mix,
         CoreEncoder& encoder)
      : program_(program), random_(random), mix_(mix), encoder_(encoder) {}

  Execution Run(int insns) {
    ip_ = program_.RandomBlock(random_);
    Advance();
    encoder_.Enable(TraceeAddr(ip_), EnableCause::kSwitchIn);
    for (int i = 0; i < insns; ++i) {
      MaybeDisturb();
      Step();
    }
    encoder_.Interrupt(TraceeAddr(ip_));
    encoder_.Flush();
    return std::move(execution_);
  }

 private:
  bool PerThousand(int chance) {
    return random_.Below(1000) < static_cast<uint64_t>(chance);
  }

  void Advance() {
    encoder_.AdvanceTime(TscTicks(now_));
    event_time_ = now_;
  }

  void Resume() {
    now_ += PerThousand(mix_.pause_per_1000) ? random_.Below(1u << 20)
                                             : random_.Below(2000);
    Advance();
    encoder_.Enable(TraceeAddr(ip_), PerThousand(200)
                                         ? EnableCause::kSwitchIn
                                         : EnableCause::kKernelReturn);
  }

  void MaybeDisturb() {
    if (PerThousand(mix_.interrupt_per_1000)) {
      Advance();
      encoder_.Interrupt(TraceeAddr(ip_));
      if (PerThousand(500)) {  // a signal
        ip_ = program_.RandomBlock(random_);
      }
      Resume();
    }
    if (PerThousand(mix_.overflow_per_1000)) {
      execution_.overflows.push_back(execution_.steps.size());
      now_ += random_.Below(3000);
      Advance();
      ip_ = program_.RandomBlock(random_);
      if (PerThousand(500)) {
        encoder_.Overflow(TraceeAddr(ip_));
      } else {
        encoder_.Overflow(std::nullopt);
        Resume();
      }
    }
  }

  void Step() {
    const RandomProgram::Insn& insn = program_.At(ip_);
    ++now_;
    const bool branch = insn.branch_class != x86::BranchClass::kNone &&
                        insn.branch_class != x86::BranchClass::kRepString &&
                        insn.branch_class != x86::BranchClass::kDirectJump &&
                        insn.branch_class != x86::BranchClass::kDirectCall;
    execution_.steps.push_back({ip_, now_, event_time_, branch});
    if (branch) {
      Advance();
    }
    Retire(insn);
  }

  void Retire(const RandomProgram::Insn& insn) {
    const TraceeAddr next(insn.next_ip);
    switch (insn.branch_class) {
      case x86::BranchClass::kNone:
      case x86::BranchClass::kRepString:
        ip_ = insn.next_ip;
        break;
      case x86::BranchClass::kConditional: {
        const bool taken = PerThousand(700);
        ip_ = taken ? insn.target : insn.next_ip;
        encoder_.Conditional(taken, TraceeAddr(ip_));
        break;
      }
      case x86::BranchClass::kDirectJump:
        ip_ = insn.target;
        break;
      case x86::BranchClass::kDirectCall:
        ip_ = insn.target;
        calls_.push_back(insn.next_ip);
        encoder_.DirectCall(next, TraceeAddr(ip_));
        break;
      case x86::BranchClass::kIndirectJump:
        ip_ = program_.RandomBlock(random_);
        encoder_.IndirectJump(TraceeAddr(ip_));
        break;
      case x86::BranchClass::kIndirectCall:
        ip_ = program_.RandomBlock(random_);
        calls_.push_back(insn.next_ip);
        encoder_.IndirectCall(next, TraceeAddr(ip_));
        break;
      case x86::BranchClass::kReturn:
        ip_ = ReturnTarget();
        encoder_.Return(TraceeAddr(ip_));
        break;
      case x86::BranchClass::kFar:
        ip_ = insn.next_ip;
        encoder_.FarTransfer();
        Resume();
        break;
    }
  }

  uint64_t ReturnTarget() {
    if (calls_.empty() || PerThousand(10 * mix_.wrong_return_percent)) {
      return program_.RandomBlock(random_);
    }
    const uint64_t target = calls_.back();
    calls_.pop_back();
    return target;
  }

  const RandomProgram& program_;
  Random& random_;
  const ExecutionMix mix_;
  CoreEncoder& encoder_;
  Execution execution_;
  std::vector<uint64_t> calls_;
  uint64_t ip_ = 0;
  uint64_t now_ = 1'000'000;
  uint64_t event_time_ = 0;
};

}  // namespace

Execution Execute(const RandomProgram& program, Random& random, int insns,
                  const ExecutionMix& mix, CoreEncoder& encoder) {
  return Runner(program, random, mix, encoder).Run(insns);
}

}  // namespace clew::recorder
