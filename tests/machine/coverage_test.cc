// Goal: what Coverage says about an instruction is what a Machine does with it.
// Method: each opcode of the four maps, with and without prefixes, operands in
// registers and in memory, run on a Machine.
#include "machine/coverage.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

#include "common/inputs.h"
#include "machine/cpu.h"
#include "machine/memory.h"

namespace clew::machine {
namespace {

constexpr uint64_t kCode = 0x10000;

// Padded with zeros, as memory behind it is.
std::vector<std::byte> InsnBytes(const std::vector<uint8_t>& opcode) {
  std::vector<std::byte> bytes(x86::kInsnBytesMax);
  for (size_t i = 0; i < opcode.size(); ++i) {
    bytes[i] = std::byte{opcode[i]};
  }
  return bytes;
}

bool MachineStops(const std::vector<std::byte>& bytes,
                  x86::FeatureSet features) {
  Memory memory;
  memory.Map(kCode, 4096, kProtRead | kProtWrite | kProtExec);
  memory.Poke(kCode, bytes);
  Registers registers;
  registers.rip = kCode;
  registers.gpr[kRcx] = kCode + 2048;
  CodeCache code(features);
  Machine machine(registers, memory, code);
  return machine.Run(1).kind == StopKind::kUnsupported;
}

TEST(CoverageTest, KnowsWhatIsAndWhatIsNot) {
  Coverage coverage(x86::kX86_64V2);
  EXPECT_TRUE(coverage.Has(InsnBytes({0x90})));               // nop
  EXPECT_TRUE(coverage.Has(InsnBytes({0x0f, 0xa2})));         // cpuid
  EXPECT_TRUE(coverage.Has(InsnBytes({0x0f, 0x05})));         // syscall
  EXPECT_TRUE(coverage.Has(InsnBytes({0x0f, 0x0b})));         // ud2 faults
  EXPECT_FALSE(coverage.Has(InsnBytes({0x0f, 0x00, 0xc0})));  // sldt eax
  EXPECT_FALSE(coverage.Has(InsnBytes({0xc5, 0xf4, 0x58, 0xc2})));  // vaddps
  EXPECT_FALSE(coverage.Has({}));
  EXPECT_EQ(
      coverage.Describe(0x401000, InsnBytes({0x0f, 0x00, 0xc0})).substr(0, 8),
      "sldt eax");
}

TEST(CoverageTest, SaysWhatFeaturesAreMissing) {
  Coverage coverage(x86::kX86_64V2);
  const auto describe = [&](const std::vector<uint8_t>& code) {
    return coverage.Describe(0x401000, InsnBytes(code));
  };
  EXPECT_EQ(describe({0xc5, 0xf5, 0xfe, 0xc2}),
            "vpaddd ymm0, ymm1, ymm2 at 0x401000 (c5 f5 fe c2), needs AVX2");
  EXPECT_TRUE(describe({0x0f, 0x38, 0xf0, 0x06}).ends_with(", needs MOVBE"));
  EXPECT_TRUE(describe({0x0f, 0xae, 0x26}).ends_with(", needs XSAVE"));
  // Capstone does not know it.
  EXPECT_EQ(describe({0x66, 0x0f, 0x38, 0xcf, 0xca}),
            "gf2p8mulb xmm1, xmm2 at 0x401000 (66 0f 38 cf ca), needs GFNI");
  // PSHUFB is of SSSE3, which the machine carries out.
  EXPECT_TRUE(describe({0x66, 0x0f, 0x38, 0x00, 0xc1}).ends_with("c1)"));
}

// All opcodes of one map behind one prefix; returns how many are known.
unsigned Compare(x86::FeatureSet features, std::vector<uint8_t> before) {
  Coverage coverage(features);
  unsigned known = 0;
  before.resize(before.size() + 2);
  for (unsigned opcode = 0; opcode < 256; ++opcode) {
    for (const unsigned operands : {0xc1u, 0x01u}) {  // ecx; [rcx]
      before[before.size() - 2] = static_cast<uint8_t>(opcode);
      before[before.size() - 1] = static_cast<uint8_t>(operands);
      const auto bytes = InsnBytes(before);
      const bool has = coverage.Has(bytes);
      EXPECT_EQ(has, !MachineStops(bytes, features))
          << coverage.Describe(0, bytes);
      known += has ? 1 : 0;
    }
  }
  return known;
}

TEST(CoverageTest, AgreesWithTheMachineOnEachOpcode) {
  const std::vector<std::vector<uint8_t>> prefixes = {
      {}, {0x66}, {0xf2}, {0xf3}};
  const std::vector<std::vector<uint8_t>> maps = {
      {}, {0x0f}, {0x0f, 0x38}, {0x0f, 0x3a}};
  unsigned known = 0;
  for (const auto& prefix : prefixes) {
    for (const auto& map : maps) {
      std::vector<uint8_t> before = prefix;
      before.insert(before.end(), map.begin(), map.end());
      known += Compare(x86::kX86_64V2, before);
    }
  }
  EXPECT_GT(known, 1000u);
}

// All opcodes of the maps with VEX, of each vector length and prefix.
unsigned CompareVex(x86::FeatureSet features) {
  unsigned known = 0;
  for (unsigned payload = 0x78; payload < 0x80; ++payload) {  // L and pp
    const auto last = static_cast<uint8_t>(payload);
    known += Compare(features, {0xc5, static_cast<uint8_t>(last | 0x80)});
    for (const uint8_t map : {uint8_t{0xe1}, uint8_t{0xe2}, uint8_t{0xe3}}) {
      known += Compare(features, {0xc4, map, last});
    }
  }
  return known;
}

TEST(CoverageTest, AgreesWithTheMachineOnVex) {
  EXPECT_GT(CompareVex(x86::kCarriedOut), 1000u);
}

TEST(MoreCoverageTest, AgreesWithAMachineThatHasNoVex) {
  EXPECT_EQ(CompareVex(x86::kX86_64V2), 0u);
}

}  // namespace
}  // namespace clew::machine
