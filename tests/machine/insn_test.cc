// Goal: what the generated forms (forms_test.cc) cannot show: all pairs of
// 8-bit operands, shift flags exactly where the manual defines them, PUSHF and
// POPF, TZCNT and LZCNT of a CPU without them, FS and GS, what observers see,
// stops, code that changes itself.
// Method: exhaustive against the CPU where the domain is small, else by hand
// from the manual.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <vector>

#include "tests/machine/forms.h"
#include "tests/machine/oracle.h"

namespace clew::machine {
namespace {

using Bytes = std::vector<uint8_t>;

// Exhaustive: op al, cl for all operands and both carries.
class ByteOpTest : public testing::TestWithParam<Bytes> {};

TEST_P(ByteOpTest, AllPairsAgreeWithTheCpu) {
  Oracle oracle;
  oracle.SetCode(GetParam());
  State state;
  int compared = 0;
  for (unsigned i = 0; i < 0x20000; i += 7) {  // 7 divides no power of two
    state.regs.gpr[kRax] = i & 0xff;
    state.regs.gpr[kRcx] = i >> 8 & 0xff;
    state.regs.rflags = 0x202 | (i >> 16);
    const uint64_t undefined =
        (GetParam()[0] & 0xf7) == 0x20 || GetParam()[0] == 0x30 ? kFlagAdjust
                                                                : 0;
    ASSERT_EQ(oracle.Compare(state, undefined), "") << fmt::format("{:#x}", i);
    ++compared;
  }
  EXPECT_EQ(compared, 0x20000 / 7 + 1);
}

// ADD, OR, ADC, SBB, AND, SUB, XOR, CMP al, cl; XADD and CMPXCHG cl, al.
INSTANTIATE_TEST_SUITE_P(Alu, ByteOpTest,
                         testing::Values(Bytes{0x00, 0xc8}, Bytes{0x10, 0xc8},
                                         Bytes{0x18, 0xc8}, Bytes{0x28, 0xc8},
                                         Bytes{0x38, 0xc8}));

// The whole domain of 2 x 65,536 is too slow natively for every test run; the
// step of 7 above takes a seventh of it. Here all of it against a definition.
TEST(ByteArithmeticTest, AllPairsAndCarriesAgreeWithTheDefinition) {
  Memory memory;
  memory.Map(kCodeAt, kPageBytes, kProtRead | kProtExec);
  const Bytes code = {0x10, 0xc8};  // adc al, cl
  ASSERT_TRUE(memory.Poke(kCodeAt, std::as_bytes(std::span(code))));
  CodeCache cache;
  Registers regs;
  Machine machine(regs, memory, cache);
  for (unsigned i = 0; i < 0x20000; ++i) {
    const unsigned a = i & 0xff, b = i >> 8 & 0xff, carry = i >> 16;
    regs.gpr[kRax] = a;
    regs.gpr[kRcx] = b;
    regs.rflags = 0x202 | carry;
    regs.rip = kCodeAt;
    ASSERT_EQ(machine.Run(1).insns_retired, 1u);
    const unsigned sum = a + b + carry;
    const auto r = static_cast<uint8_t>(sum);
    const int exact = static_cast<int8_t>(a) + static_cast<int8_t>(b) +
                      static_cast<int>(carry);
    uint64_t flags = 0;
    flags |= sum > 0xff ? kFlagCarry : 0;
    flags |= exact != static_cast<int8_t>(r) ? kFlagOverflow : 0;
    flags |= r == 0 ? kFlagZero : 0;
    flags |= r >= 0x80 ? kFlagSign : 0;
    flags |= std::popcount(r) % 2 == 0 ? kFlagParity : 0;
    flags |= (a & 15) + (b & 15) + carry > 15 ? kFlagAdjust : 0;
    ASSERT_EQ(regs.gpr[kRax], r) << i;
    ASSERT_EQ(regs.rflags & kFlagsArithmetic, flags) << i;
  }
}

// Counts of 1 define overflow, counts up to the width define carry: exactly
// compared there. Groups C0 and C1, every operation, every count.
TEST(ShiftTest, DefinedFlagsAgreeWithTheCpu) {
  Oracle oracle;
  Random random(3);
  int compared = 0;
  for (const unsigned width : {8u, 16u, 32u, 64u}) {
    for (unsigned operation = 0; operation < 8; ++operation) {
      for (unsigned count = 0; count < 64; ++count) {
        Bytes code;
        if (width == 16) {
          code = {0x66};
        } else if (width == 64) {
          code = {0x48};
        }
        code.push_back(width == 8 ? 0xc0 : 0xc1);
        code.push_back(static_cast<uint8_t>(0xc0 | operation << 3));
        code.push_back(static_cast<uint8_t>(count));
        oracle.SetCode(code);
        const unsigned masked = count & (width == 64 ? 63 : 31);
        const bool rotates = operation < 4;
        uint64_t undefined = 0;
        if (masked != 0) {
          undefined |= rotates ? 0 : kFlagAdjust;
          undefined |= masked != 1 ? kFlagOverflow : 0;
          undefined |= !rotates && masked > width ? kFlagCarry : 0;
        }
        for (int i = 0; i < 4; ++i) {
          ASSERT_EQ(oracle.Compare(MakeState(random), undefined), "")
              << "width " << width << " operation " << operation << " count "
              << count;
          ++compared;
        }
      }
    }
  }
  EXPECT_EQ(compared, 4 * 8 * 64 * 4);
}

TEST(XtestTest, OutsideOfATransactionAgreesWithTheCpu) {
  if (!x86::HostFeatures().Has(x86::Feature::kRtm)) {
    GTEST_SKIP() << "this CPU has no RTM";
  }
  Oracle oracle;
  Random random(4);
  oracle.SetCode(Bytes{0x0f, 0x01, 0xd6});
  for (int i = 0; i < 64; ++i) {
    ASSERT_EQ(oracle.Compare(MakeState(random), 0), "") << "trial " << i;
  }
}

// What follows is without the CPU.
class MachineTest : public testing::Test {
 protected:
  static constexpr uint32_t kCodeProt = kProtRead | kProtWrite | kProtExec;

  MachineTest() : machine_(regs_, memory_, cache_) {
    memory_.Map(kCodeAt, kPageBytes, kCodeProt);
    memory_.Map(kDataAt, kDataBytes, kProtRead | kProtWrite);
    regs_.gpr[kRsp] = kDataAt + 0x800;
    regs_.rip = kCodeAt;
  }
  void SetCode(const Bytes& code) {
    ASSERT_TRUE(memory_.Poke(kCodeAt, std::as_bytes(std::span(code))));
  }
  uint64_t Word(uint64_t addr) {
    uint64_t value = 0;
    EXPECT_TRUE(memory_.Load(addr, value));
    return value;
  }

  Memory memory_;
  CodeCache cache_;
  Registers regs_;
  Machine machine_;
};

TEST_F(MachineTest, PushfStoresAllFlagsAndPopfChangesUserOnes) {
  SetCode({0x9c, 0x9d});  // pushfq; popfq
  regs_.rflags = 0x202 | kFlagCarry | kFlagOverflow | kFlagDirection;
  EXPECT_EQ(machine_.Run(1).insns_retired, 1u);
  EXPECT_EQ(Word(kDataAt + 0x800 - 8), 0xe03u);
  // All ones but TF: IF, IOPL, RF, VM, VIF, VIP stay as they were.
  ASSERT_TRUE(memory_.Store(kDataAt + 0x800 - 8, ~uint64_t{kFlagTrap}));
  EXPECT_EQ(machine_.Run(1).insns_retired, 1u);
  EXPECT_EQ(regs_.rflags, 0x244cd5u | 0x202u);
  EXPECT_EQ(regs_.gpr[kRsp], kDataAt + 0x800);
}

TEST_F(MachineTest, PopfOfTheTrapFlagIsRefused) {
  SetCode({0x9d});
  ASSERT_TRUE(memory_.Store(kDataAt + 0x800, uint64_t{kFlagTrap}));
  const Stop stop = machine_.Run(1);
  EXPECT_EQ(stop.kind, StopKind::kUnsupported);
  EXPECT_EQ(stop.insns_retired, 0u);
  EXPECT_EQ(stop.detail, "popfq  at 0x20000000 (9d)");
}

// The forms' tests compare with the CPU that is here, which has one maker.
TEST_F(MachineTest, ARepeatThatNeverRepeatsIsItsMakers) {
  constexpr uint64_t kUpper = 0x1234567800000000;
  struct Case {
    uint32_t mxcsr_mask;
    uint8_t opcode;
    bool clears_rcx, clears_rsi, clears_rdi;
  };
  for (const auto& [mask, opcode, clears_rcx, clears_rsi, clears_rdi] :
       {Case{0, 0xa4, false, false, false},         // QEMU, movsb
        Case{0x2ffff, 0xa4, false, false, false},   // AMD
        Case{0xffff, 0xa4, true, true, true},       // Intel
        Case{0xffff, 0xaa, true, false, true},      // stosb
        Case{0xffff, 0xac, true, false, false},     // lodsb
        Case{0xffff, 0xa6, true, false, false},     // cmpsb
        Case{0xffff, 0xae, true, false, false}}) {  // scasb
    SetCode({0x67, 0xf3, opcode});
    regs_.mxcsr_mask = mask;
    regs_.rip = kCodeAt;
    regs_.gpr[kRcx] = regs_.gpr[kRsi] = regs_.gpr[kRdi] = kUpper;
    EXPECT_EQ(machine_.Run(1).insns_retired, 1u);
    EXPECT_EQ(regs_.gpr[kRcx] == 0, clears_rcx) << mask << " " << +opcode;
    EXPECT_EQ(regs_.gpr[kRsi] == 0, clears_rsi) << mask << " " << +opcode;
    EXPECT_EQ(regs_.gpr[kRdi] == 0, clears_rdi) << mask << " " << +opcode;
  }
}

// F3 0F BC and F3 0F BD on a CPU without BMI1 and LZCNT.
TEST_F(MachineTest, TzcntAndLzcntAreBsfAndBsr) {
  SetCode({0xf3, 0x0f, 0xbc, 0xc1, 0xf3, 0x0f, 0xbd, 0xc1});
  regs_.gpr[kRcx] = 0x00f0;
  EXPECT_EQ(machine_.Run(1).insns_retired, 1u);
  EXPECT_EQ(regs_.gpr[kRax], 4u);
  EXPECT_EQ(machine_.Run(1).insns_retired, 1u);
  EXPECT_EQ(regs_.gpr[kRax], 7u);
  regs_.gpr[kRcx] = 0;
  regs_.rip = kCodeAt;
  EXPECT_EQ(machine_.Run(2).insns_retired, 2u);
  EXPECT_EQ(regs_.gpr[kRax], 7u) << "0 leaves the destination alone";
  EXPECT_NE(regs_.rflags & kFlagZero, 0u);
}

TEST_F(MachineTest, SegmentBasesAreAdded) {
  SetCode({0x64, 0x48, 0x8b, 0x04, 0x25, 0x10, 0,    0,    0,  // rax = fs:[16]
           0x65, 0x48, 0x8b, 0x0c, 0x25, 0xf8, 0xff, 0xff, 0xff,  // gs:[-8]
           0x64, 0x48, 0x8d, 0x14, 0x25, 0x10, 0,    0,    0});  // lea: no base
  regs_.fs_base = kDataAt;
  regs_.gs_base = kDataAt + 0x100;
  ASSERT_TRUE(memory_.Store(kDataAt + 16, uint64_t{11}));
  ASSERT_TRUE(memory_.Store(kDataAt + 0xf8, uint64_t{22}));
  EXPECT_EQ(machine_.Run(3).insns_retired, 3u);
  EXPECT_EQ(regs_.gpr[kRax], 11u);
  EXPECT_EQ(regs_.gpr[kRcx], 22u);
  EXPECT_EQ(regs_.gpr[kRdx], 16u);
}

class Recorder final : public AccessObserver {
 public:
  bool OnAccess(const ObservedAccess& access) override {
    seen.push_back(access);
    return seen.size() == stop_at;
  }
  std::vector<ObservedAccess> seen;
  size_t stop_at = 0;
};

TEST_F(MachineTest, ObserverSeesEveryAccessOnce) {
  SetCode({0xf0, 0x48, 0x01, 0x03,  // lock add [rbx], rax
           0x48, 0x01, 0x03,        // add [rbx], rax
           0x48, 0x87, 0x03,        // xchg [rbx], rax
           0xf3, 0xa4,              // rep movsb, rcx = 2
           0x0f, 0xc7, 0x0b});      // cmpxchg8b [rbx]
  regs_.gpr[kRbx] = kDataAt + 8;
  regs_.gpr[kRax] = 1;
  regs_.gpr[kRcx] = 2;
  regs_.gpr[kRsi] = kDataAt;
  regs_.gpr[kRdi] = kDataAt + 64;
  Recorder recorder;
  machine_.set_observer(&recorder);
  EXPECT_EQ(machine_.Run(5).insns_retired, 5u);
  const auto kRmw = AccessKind::kReadModifyWrite;
  const auto kR = AccessKind::kRead;
  const auto kW = AccessKind::kWrite;
  const struct {
    uint64_t ip, offset, addr, value;
    uint32_t size;
    AccessKind kind;
  } expected[] = {
      {0, 0, 8, 0, 8, kRmw}, {4, 1, 8, 1, 8, kR},   {4, 1, 8, 2, 8, kW},
      {7, 2, 8, 2, 8, kRmw}, {10, 3, 0, 0, 1, kR},  {10, 3, 64, 0, 1, kW},
      {10, 3, 1, 0, 1, kR},  {10, 3, 65, 0, 1, kW}, {12, 4, 8, 1, 8, kRmw}};
  ASSERT_EQ(recorder.seen.size(), std::size(expected));
  for (size_t i = 0; i < recorder.seen.size(); ++i) {
    const ObservedAccess& access = recorder.seen[i];
    EXPECT_EQ(access.ip, kCodeAt + expected[i].ip) << i;
    EXPECT_EQ(access.insn_offset, expected[i].offset) << i;
    EXPECT_EQ(access.addr, kDataAt + expected[i].addr) << i;
    EXPECT_EQ(access.value, expected[i].value) << i;
    EXPECT_EQ(access.size_bytes, expected[i].size) << i;
    EXPECT_EQ(access.kind, expected[i].kind) << i;
  }
}

TEST_F(MachineTest, ObserverStopsAfterTheInstruction) {
  SetCode({0x48, 0x8b, 0x03, 0x48, 0x8b, 0x03});  // mov rax, [rbx], twice
  regs_.gpr[kRbx] = kDataAt;
  Recorder recorder;
  recorder.stop_at = 1;
  machine_.set_observer(&recorder);
  const Stop stop = machine_.Run(10);
  EXPECT_EQ(stop.kind, StopKind::kObserver);
  EXPECT_EQ(stop.insns_retired, 1u);
  EXPECT_EQ(regs_.rip, kCodeAt + 3);
}

TEST_F(MachineTest, SyscallRetiresAndSavesRipAndFlags) {
  SetCode({0x48, 0x39, 0xc0, 0x0f, 0x05});  // cmp rax, rax; syscall
  const Stop stop = machine_.Run(10);
  EXPECT_EQ(stop.kind, StopKind::kSyscall);
  EXPECT_EQ(stop.insns_retired, 2u);
  EXPECT_EQ(regs_.rip, kCodeAt + 5);
  EXPECT_EQ(regs_.gpr[kRcx], kCodeAt + 5);
  EXPECT_EQ(regs_.gpr[kR11], regs_.rflags);
  EXPECT_EQ(regs_.rflags, 0x202 | kFlagZero | kFlagParity);
}

TEST_F(MachineTest, NondeterministicInsnsWaitForTheirResult) {
  const Bytes insns[] = {{0x0f, 0xa2},         // cpuid
                         {0x0f, 0x31},         // rdtsc
                         {0x0f, 0x01, 0xf9},   // rdtscp
                         {0x0f, 0x01, 0xd0},   // xgetbv
                         {0x0f, 0xc7, 0xf0},   // rdrand
                         {0x0f, 0xc7, 0xf8}};  // rdseed
  for (const Bytes& code : insns) {
    SetCode(code);
    regs_.rip = kCodeAt;
    const Stop stop = machine_.Run(10);
    ASSERT_EQ(stop.kind, StopKind::kNondeterministic);
    EXPECT_EQ(stop.insns_retired, 0u);
    EXPECT_EQ(regs_.rip, kCodeAt);
    InsnInput input;
    input.rax = 1;
    input.rbx = 2;
    input.rcx = 3;
    input.rdx = 4;
    input.rflags = 0x202 | kFlagCarry;
    machine_.CompleteInsn(input);
    EXPECT_EQ(regs_.rip, kCodeAt + code.size());
    EXPECT_EQ(regs_.gpr[kRdx], 4u);
    EXPECT_EQ(regs_.rflags & kFlagsArithmetic, kFlagCarry);
  }
}

TEST_F(MachineTest, FaultsAreNamedAndChangeNothing) {
  const struct {
    Bytes code;
    FaultKind kind;
  } cases[] = {{{0x0f, 0x0b}, FaultKind::kIllegal},
               {{0x06}, FaultKind::kIllegal},
               {{0xf0, 0x01, 0xc0}, FaultKind::kIllegal},  // lock add eax, eax
               {{0x8e, 0xc8}, FaultKind::kIllegal},        // mov cs, eax
               {{0xf4}, FaultKind::kGeneral},              // hlt
               {{0xf7, 0xf1}, FaultKind::kDivide},         // div ecx, by 0
               {{0x8b, 0x03}, FaultKind::kUnmapped},       // mov eax, [rbx]
               {{0xff, 0xe3}, FaultKind::kGeneral}};       // jmp rbx
  for (const auto& test : cases) {
    SetCode(test.code);
    regs_.rip = kCodeAt;
    regs_.gpr[kRcx] = 0;
    regs_.gpr[kRbx] =
        test.kind == FaultKind::kGeneral ? uint64_t{1} << 60 : 0x5000;
    const Registers before = regs_;
    const Stop stop = machine_.Run(10);
    EXPECT_EQ(stop.kind, StopKind::kFault);
    EXPECT_EQ(stop.fault.kind, test.kind) << int{test.code[0]};
    EXPECT_EQ(stop.insns_retired, 0u);
    EXPECT_TRUE(regs_ == before);
  }
}

TEST_F(MachineTest, ABreakpointRetiresAndChangesNothing) {
  SetCode({0x90, 0xcc, 0x90});
  regs_.rip = kCodeAt;
  Registers expected = regs_;
  expected.rip += 2;
  const Stop stop = machine_.Run(10);
  EXPECT_EQ(stop.kind, StopKind::kBreakpoint);
  EXPECT_EQ(stop.insns_retired, 2u);
  EXPECT_TRUE(regs_ == expected);
}

TEST_F(MachineTest, FetchFaultsWhereNothingIsExecutable) {
  regs_.rip = kDataAt;
  Stop stop = machine_.Run(1);
  EXPECT_EQ(stop.fault.kind, FaultKind::kProtection);
  regs_.rip = 0x5000;
  stop = machine_.Run(1);
  EXPECT_EQ(stop.fault.kind, FaultKind::kUnmapped);
  EXPECT_EQ(stop.fault.addr, 0x5000u);
  // An instruction cut off by the end of the page.
  const Bytes code = {0x48, 0x8b};
  regs_.rip = kCodeAt + kPageBytes - 2;
  ASSERT_TRUE(memory_.Poke(regs_.rip, std::as_bytes(std::span(code))));
  stop = machine_.Run(1);
  EXPECT_EQ(stop.fault.kind, FaultKind::kUnmapped);
  EXPECT_EQ(stop.fault.addr, kCodeAt + kPageBytes);
}

TEST_F(MachineTest, AWholeInstructionAtTheEndOfAPageIsNotCutOff) {
  // Bytes that Capstone does not know: 0f 38 ad is not an opcode.
  const Bytes code = {0x0f, 0x38, 0xad, 0xd8};
  regs_.rip = kCodeAt + kPageBytes - code.size();
  ASSERT_TRUE(memory_.Poke(regs_.rip, std::as_bytes(std::span(code))));
  EXPECT_EQ(machine_.Run(1).kind, StopKind::kUnsupported);
}

TEST_F(MachineTest, WhatCapstoneReadsWronglyIsRefused) {
  // RET imm16 with REX.W and 66 or 67: 7 bytes to Capstone, 5 to CPUs.
  for (const uint8_t prefix : Bytes{0x66, 0x67}) {
    SetCode({prefix, 0x48, 0xc2, 0x08, 0x00, 0x90, 0x90, 0x90});
    regs_.rip = kCodeAt;
    EXPECT_EQ(machine_.Run(1).kind, StopKind::kUnsupported);
  }
}

TEST_F(MachineTest, VexAndEvexAreRefusedUnlessUndefined) {
  const Bytes refused[] = {{0xc5, 0xf5, 0xfe, 0x00},
                           {0xc4, 0xe2, 0x78, 0xf2, 0x00},
                           {0x62, 0xf1, 0x7c, 0x48, 0x10, 0x40, 0x01}};
  for (const Bytes& code : refused) {
    SetCode(code);
    regs_.rip = kCodeAt;
    EXPECT_EQ(machine_.Run(1).kind, StopKind::kUnsupported);
    Bytes locked = {0xf0};
    locked.insert(locked.end(), code.begin(), code.end());
    SetCode(locked);
    EXPECT_EQ(machine_.Run(1).fault.kind, FaultKind::kIllegal);
  }
}

TEST_F(MachineTest, UnsupportedNamesTheInstruction) {
  SetCode({0x90, 0xc5, 0xf4, 0x58, 0xc2});
  const Stop stop = machine_.Run(10);
  EXPECT_EQ(stop.kind, StopKind::kUnsupported);
  EXPECT_EQ(stop.insns_retired, 1u);
  EXPECT_EQ(regs_.rip, kCodeAt + 1);
  EXPECT_EQ(stop.detail.substr(0, 42),
            "vaddps ymm0, ymm1, ymm2 at 0x20000001 (c5 ");
  EXPECT_TRUE(stop.detail.ends_with("), needs AVX")) << stop.detail;
}

// An instruction overwrites the next one within its block.
TEST_F(MachineTest, CodeThatChangesItselfIsSeenAtOnce) {
  SetCode({0xc6, 0x05, 0x01, 0, 0, 0, 0x42,  // mov byte [rip+1], 0x42
           0xb0, 0x11,                       // mov al, 0x11 -> 0x42
           0xf4});
  const Stop stop = machine_.Run(10);
  EXPECT_EQ(stop.insns_retired, 2u);
  EXPECT_EQ(regs_.gpr[kRax], 0x42u);
}

TEST_F(MachineTest, ARunCanStopAnywhereInABlock) {
  SetCode({0xff, 0xc0, 0xff, 0xc0, 0xff, 0xc0, 0xeb, 0xf8});  // inc eax x3; jmp
  for (int i = 1; i <= 40; ++i) {
    EXPECT_EQ(machine_.Run(1).insns_retired, 1u);
    EXPECT_EQ(regs_.gpr[kRax], static_cast<uint64_t>(i - i / 4));
    EXPECT_EQ(regs_.rip, kCodeAt + static_cast<uint64_t>(i % 4) * 2);
  }
}

// REP MOVSB copies in bulk where nobody watches: page ends, overlaps and
// directions give the same as one by one.
TEST_F(MachineTest, BulkCopiesAreAsSingleIterations) {
  memory_.Map(kDataAt, 4 * kPageBytes, kProtRead | kProtWrite);
  SetCode({0xf3, 0xa4});
  Random random(5);
  Memory watched = memory_;
  Registers regs;
  CodeCache cache;
  Machine slow(regs, watched, cache);
  Recorder recorder;
  slow.set_observer(&recorder);
  for (int i = 0; i < 300; ++i) {
    regs_.rip = kCodeAt;
    regs_.gpr[kRcx] = random.Below(6000);
    regs_.gpr[kRsi] = kDataAt + random.Below(4 * kPageBytes);
    regs_.gpr[kRdi] = random.Below(2) == 0
                          ? kDataAt + random.Below(4 * kPageBytes)
                          : regs_.gpr[kRsi] + random.Below(64) - 32;
    regs_.rflags = 0x202 | (random.Below(4) == 0 ? kFlagDirection : 0);
    ASSERT_TRUE(memory_.Store(kDataAt + random.Below(8000), random.Next()));
    watched = memory_;
    regs = regs_;
    const Stop a = machine_.Run(1);
    const Stop b = slow.Run(1);
    ASSERT_EQ(a.fault.kind, b.fault.kind);
    ASSERT_EQ(a.fault.addr, b.fault.addr);
    ASSERT_TRUE(regs_ == regs) << i;
    std::vector<std::byte> bytes(4 * kPageBytes), same(4 * kPageBytes);
    ASSERT_TRUE(memory_.Peek(kDataAt, bytes));
    ASSERT_TRUE(watched.Peek(kDataAt, same));
    ASSERT_TRUE(bytes == same) << i;
  }
}

}  // namespace
}  // namespace clew::machine
