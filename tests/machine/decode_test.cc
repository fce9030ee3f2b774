// Goal: what the decoder tells of instructions with VEX: their operands, their
// vector length, that they need a feature, and that none is taken for a legacy
// one.
// Method: examples from the manual (Intel SDM vol. 2); then each opcode of the
// maps with each payload that is not a register number.

#include "machine/decode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "common/inputs.h"

namespace clew::machine {
namespace {

using Code = std::vector<uint8_t>;

Decoded Decode(const Code& code) {
  static Decoder decoder;
  return decoder.Decode(0, std::as_bytes(std::span(code)));
}

// "y0 y1 [32" for YMM0, YMM1 and 32 bytes of memory; "r" and "i" are general
// registers and immediates.
std::string OperandsOf(const Insn& insn) {
  std::string text;
  for (unsigned i = 0; i < insn.op_count; ++i) {
    const Operand& operand = insn.op[i];
    const char* kind = operand.is_mem()           ? "["
                       : operand.is_imm()         ? "i"
                       : operand.is_reg()         ? "r"
                       : operand.size_bytes == 32 ? "y"
                       : operand.is_vec()         ? "x"
                                                  : "?";
    const unsigned number = operand.is_mem()   ? operand.size_bytes
                            : operand.is_imm() ? 0u
                            : operand.is_reg() ? operand.reg / 8u
                                               : operand.reg;
    text += (i == 0 ? "" : " ") + std::string(kind) + std::to_string(number);
  }
  return text;
}

struct Example {
  Code code;
  std::string_view mnemonic;
  unsigned vector_bytes;
  std::string operands;
};

TEST(DecodeTest, VexOperandsAreInTheManualsOrder) {
  const Example examples[] = {
      {{0xc5, 0xf1, 0xfe, 0xc2}, "vpaddd", 16, "x0 x1 x2"},
      {{0xc5, 0xf5, 0xfe, 0xc2}, "vpaddd", 32, "y0 y1 y2"},
      {{0xc4, 0x41, 0x3d, 0xfe, 0xc2}, "vpaddd", 32, "y8 y8 y10"},
      {{0xc5, 0xf5, 0xfe, 0x06}, "vpaddd", 32, "y0 y1 [32"},
      {{0xc5, 0xfa, 0x6f, 0x0e}, "vmovdqu", 16, "x1 [16"},
      {{0xc5, 0xfe, 0x7f, 0x0e}, "vmovdqu", 32, "[32 y1"},
      {{0xc5, 0xfd, 0x70, 0xc1, 0x4e}, "vpshufd", 32, "y0 y1 i0"},
      {{0xc5, 0xf5, 0x72, 0xd2, 0x03}, "vpsrld", 32, "y1 y2 i0"},
      {{0xc4, 0xe3, 0x75, 0x4c, 0xc1, 0x40}, "vpblendvb", 32, "y0 y1 y1 y4"},
      {{0xc4, 0xe2, 0x78, 0xf2, 0xc1}, "andn", 16, "r0 r0 r1"},
      {{0xc5, 0xf4, 0xc2, 0xc2, 0x01}, "vcmpps", 32, "y0 y1 y2 i0"},
      {{0xc5, 0xf8, 0x77}, "vzeroupper", 16, ""},
      {{0x66, 0x0f, 0xfe, 0xc2}, "paddd", 0, "x0 x2"}};
  for (const Example& example : examples) {
    const Decoded decoded = Decode(example.code);
    EXPECT_EQ(decoded.status, DecodeStatus::kOk) << example.mnemonic;
    EXPECT_EQ(decoded.mnemonic, example.mnemonic);
    EXPECT_EQ(decoded.insn.vector_bytes, example.vector_bytes);
    EXPECT_EQ(OperandsOf(decoded.insn), example.operands) << example.mnemonic;
    EXPECT_EQ(decoded.insn.length, example.code.size()) << example.mnemonic;
  }
}

TEST(DecodeTest, VvvvThatNamesNothingHasToBeOnes) {
  for (const Code& code : {Code{0xc5, 0xf1, 0x77},           // vzeroupper
                           Code{0xc5, 0xf5, 0x6f, 0xc1},     // vmovdqa
                           Code{0xc5, 0xf2, 0x6f, 0x06}}) {  // vmovdqu
    EXPECT_EQ(Decode(code).status, DecodeStatus::kUnknown);
  }
}

TEST(DecodeTest, ALegacyPrefixBeforeVexIsIllegal) {
  for (const int byte : {0x66, 0xf0, 0xf2, 0xf3}) {
    const auto prefix = static_cast<uint8_t>(byte);
    EXPECT_EQ(Decode({prefix, 0xc5, 0xf8, 0x77}).status, DecodeStatus::kIllegal)
        << byte;
  }
}

TEST(DecodeTest, AnIndexMayBeAVectorRegister) {
  // vpgatherdd xmm0, [rdx + xmm9 * 4 + 8], xmm2
  const Decoded decoded = Decode({0xc4, 0xa2, 0x69, 0x90, 0x44, 0x8a, 0x08});
  EXPECT_EQ(decoded.status, DecodeStatus::kOk);
  EXPECT_EQ(decoded.mnemonic, "vpgatherdd");
  EXPECT_EQ(decoded.insn.mem.base, kRdx);
  EXPECT_EQ(decoded.insn.mem.index, MemOperand::kNoReg);
  EXPECT_EQ(decoded.insn.mem.vector_index, 9);
  EXPECT_EQ(decoded.insn.mem.shift, 2);
  EXPECT_EQ(decoded.insn.mem.disp, 8);
  EXPECT_EQ(OperandsOf(decoded.insn), "x0 [4 x2");
}

// vpgatherdd ymm6, [rax], ymm4, which Capstone takes for one.
TEST(DecodeTest, AGatherWithoutAVectorInItsAddressIsNone) {
  EXPECT_EQ(Decode({0xc4, 0xe2, 0x5d, 0x90, 0x30}).status,
            DecodeStatus::kUnknown);
  EXPECT_EQ(Decode({0xc4, 0xe2, 0x5d, 0x90, 0x34, 0x28}).status,
            DecodeStatus::kOk);
}

// A CPU without TZCNT and LZCNT takes them for BSF and BSR, wherever the prefix
// stands; F2 behind it puts it out of force.
TEST(DecodeTest, ACountOfZerosIsAScanElsewhere) {
  const auto expect = [](const Code& code, std::string_view mnemonic,
                         std::string_view otherwise, x86::FeatureSet needs) {
    const Decoded decoded = Decode(code);
    EXPECT_EQ(decoded.mnemonic, mnemonic);
    EXPECT_EQ(decoded.otherwise, otherwise);
    EXPECT_EQ(decoded.needs, needs);
  };
  expect({0xf3, 0x0f, 0xbc, 0xc1}, "tzcnt", "bsf", {x86::Feature::kBmi1});
  expect({0xf3, 0x67, 0x0f, 0xbc, 0x06}, "tzcnt", "bsf", {x86::Feature::kBmi1});
  expect({0xf3, 0x48, 0x0f, 0xbd, 0xc1}, "lzcnt", "bsr",
         {x86::Feature::kLzcnt});
  expect({0x0f, 0xbc, 0xc1}, "bsf", "", {});
  expect({0xf3, 0xf2, 0x0f, 0xbd, 0xc1}, "bsr", "", {});
}

// The instructions of BMI1 and BMI2 are the only ones with VEX whose mnemonic
// does not begin with a V.
TEST(DecodeTest, NoVexEncodingHasALegacyMnemonic) {
  const std::vector<std::string_view> general = {
      "andn", "bextr", "blsi", "blsmsk", "blsr", "bzhi", "mulx",
      "pdep", "pext",  "rorx", "sarx",   "shlx", "shrx"};
  unsigned vector = 0;
  for (const uint8_t map : {uint8_t{1}, uint8_t{2}, uint8_t{3}}) {
    for (unsigned low = 0; low < 16; ++low) {  // W, L and pp
      for (unsigned opcode = 0; opcode < 256; ++opcode) {
        for (const uint8_t modrm : {uint8_t{0xc1}, uint8_t{0x06}}) {
          const auto payload =
              static_cast<uint8_t>((low & 8) << 4 | 0x78 | (low & 7));
          const Decoded decoded =
              Decode({0xc4, static_cast<uint8_t>(0xe0 | map), payload,
                      static_cast<uint8_t>(opcode), modrm, 0, 0, 0, 0, 0});
          if (decoded.status != DecodeStatus::kOk) {
            continue;
          }
          const bool is_vector = decoded.mnemonic.starts_with("v") ||
                                 decoded.mnemonic.starts_with("k");
          EXPECT_TRUE(is_vector ||
                      std::ranges::find(general, decoded.mnemonic) !=
                          general.end())
              << decoded.mnemonic;
          // Map 3 has FMA4 and XOP, which are no features of ours.
          EXPECT_TRUE(map == 3 || !decoded.needs.empty()) << decoded.mnemonic;
          vector += is_vector ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(vector, 1000u);
}

}  // namespace
}  // namespace clew::machine
