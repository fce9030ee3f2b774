// Goal: lengths and branch classes are those of the CPU manuals.
// Method: differential, exhaustive where it can be: every opcode of every map
// with prefixes and all ModRM bytes; VEX with every payload; EVEX; random bytes
// (the seed is printed, CLEW_SEED sets another).
// Oracle: Capstone, where it knows the instruction; where it is known to be
// wrong, libipt has to agree with us instead. Each excuse must be needed.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <intel-pt.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "common/digest.h"
#include "common/x86/branch.h"
#include "common/x86/layout.h"
#include "tests/common/x86/capstone_oracle.h"
#include "tests/recorder/pt_encoder/ipt_decode.h"
#include "tests/support/hex.h"

namespace clew::x86 {
namespace {

using Bytes = std::vector<uint8_t>;

// Why Capstone 4.0.2 may say something else.
enum class Excuse : uint8_t {
  kNone,
  // We give no length to what raises #UD whatever follows. (Capstone knows
  // UD0, UD1, UD2, and takes VEX behind 66, F2, F3 for VEX.)
  kUndefined,
  // 66 before a near branch: Capstone has a 16-bit displacement, as on CPUs by
  // AMD. With 67 and REX.W it mistakes the 67 for one.
  kNear16,
  // REX.W with 66 or 67, or 66 with F2 or F3: Capstone looks into the table of
  // another operand size (RET imm16 and PUSH imm get 4 bytes).
  kOperandSize,
  // 8F with another reg than 0 is #UD on CPUs by Intel, and XOP to Capstone.
  kXop,
  // 0F 78 is VMREAD, or with 66, F2 and register operands EXTRQ, INSERTQ:
  // CPUs by AMD have it. Capstone forgets the prefix of forms with memory.
  kSse4a,
  // EVEX arithmetic on registers with rounding: Capstone takes one byte too
  // many.
  kRounding,
  // EVEX with 67, and X or B: Capstone forgets the SIB byte or displacement
  // that the low bits of rm stand for.
  kEvexAddress,
  // REPNE MOVSD: Capstone takes F2 A5 for the MOVSD of SSE, which does not
  // repeat.
  kMovsd,
};

bool IsNearBranch(const Opcode& opcode) {
  return (opcode.map == OpcodeMap::kOneByte &&
          (opcode.code == 0xe8 || opcode.code == 0xe9)) ||
         (opcode.map == OpcodeMap::k0F && opcode.code >> 4 == 8);
}

Excuse ExcuseOf(const Layout& layout, size_t capstone_length) {
  const Opcode& opcode = layout.opcode;
  const Prefixes& prefixes = opcode.prefixes;
  const bool repeats = prefixes.rep || prefixes.repne;
  const bool sized = prefixes.operand_size || prefixes.address_size;
  if (layout.status == LayoutStatus::kUndefined) {
    return Excuse::kUndefined;
  }
  if (opcode.encoding == Encoding::kEvex) {
    return !layout.names_memory() && capstone_length == layout.length + 1u
               ? Excuse::kRounding
           : layout.names_memory() && prefixes.address_size &&
                   (prefixes.rex & 3) != 0
               ? Excuse::kEvexAddress
               : Excuse::kNone;
  }
  if (opcode.encoding != Encoding::kLegacy) {
    return Excuse::kNone;
  }
  if (IsNearBranch(opcode) &&
      (prefixes.operand_size || (prefixes.address_size && prefixes.w()))) {
    return Excuse::kNear16;
  }
  if (opcode.IsLegacy(OpcodeMap::k0F)) {
    return opcode.code == 0x78 ? Excuse::kSse4a : Excuse::kNone;
  }
  if (opcode.IsLegacy(OpcodeMap::kOneByte)) {
    const bool mixed =
        (sized && prefixes.w()) || (prefixes.operand_size && repeats);
    return opcode.code == 0x8f                     ? Excuse::kXop
           : opcode.code == 0xa5 && prefixes.repne ? Excuse::kMovsd
           : (opcode.code == 0xc2 || opcode.code == 0x68) && mixed
               ? Excuse::kOperandSize
               : Excuse::kNone;
  }
  return Excuse::kNone;
}

class DifferentialTest : public testing::Test {
 protected:
  static uint64_t Seed() {
    const char* seed = std::getenv("CLEW_SEED");
    return seed != nullptr ? std::strtoull(seed, nullptr, 0) : 1;
  }

  void TearDown() override {
    fmt::print("seed {}: {} instructions known to Capstone of {} tried\n",
               Seed(), known_, tried_);
    for (const auto& [excuse, count] : excused_) {
      fmt::print("  excuse {}: {}\n", static_cast<int>(excuse), count);
    }
  }

  // `bytes` filled up with random ones.
  void Check(Bytes bytes) {
    while (bytes.size() < kInsnBytesMax) {
      bytes.push_back(static_cast<uint8_t>(random_.Next()));
    }
    ++tried_;
    const auto known = capstone_.Disassemble(bytes);
    if (!known) {
      return;
    }
    ++known_;
    const Layout layout = ScanLayout(bytes);
    const BranchClass ours = ClassOf(layout.opcode, layout.modrm);
    if (layout.length == known->length && ours == known->branch_class) {
      ++classes_[ours];
      return;
    }
    const Excuse excuse = ExcuseOf(layout, known->length);
    ++excused_[excuse];
    const bool excused = excuse == Excuse::kMovsd
                             ? layout.length == known->length
                             : ours == known->branch_class &&
                                   excuse != Excuse::kNone &&
                                   IptAgrees(bytes, layout);
    if (!excused && ++failures_ < 10) {
      ADD_FAILURE() << test::Hex(bytes) << ": " << capstone_.text() << ", "
                    << known->length << " bytes, class "
                    << static_cast<int>(known->branch_class) << "; ours "
                    << int{layout.length} << ", class "
                    << static_cast<int>(ours) << "; excuse "
                    << static_cast<int>(excuse);
    }
  }

  // libipt skips what it does not know; a length of ours must be its length.
  static bool IptAgrees(const Bytes& bytes, const Layout& layout) {
    if (layout.status == LayoutStatus::kUndefined) {
      return true;
    }
    const auto ipt = recorder::ClassifyWithIpt({{0x1000, bytes}}, 0x1000);
    return ipt && ipt->size == layout.length;
  }

  CapstoneOracle capstone_;
  Random random_{Seed()};
  uint64_t tried_ = 0;
  uint64_t known_ = 0;
  int failures_ = 0;
  std::map<BranchClass, uint64_t> classes_;
  std::map<Excuse, uint64_t> excused_;
};

Bytes Join(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// Every ModRM byte; with SIB one that has a base, one that has none, RSP.
std::vector<Bytes> ModRms() {
  std::vector<Bytes> all;
  for (unsigned modrm = 0; modrm < 256; ++modrm) {
    const auto byte = static_cast<uint8_t>(modrm);
    if (modrm >> 6 == 3 || (modrm & 7) != 4) {
      all.push_back({byte});
      continue;
    }
    for (const uint8_t sib : Bytes{0x00, 0x25, 0x24}) {
      all.push_back({byte, sib});
    }
  }
  return all;
}

TEST_F(DifferentialTest, EveryLegacyOpcodeWithPrefixesAndModRm) {
  const std::vector<Bytes> prefixes = {
      {},           {0x66},       {0x67},       {0xf2},       {0xf3},
      {0xf0},       {0x2e},       {0x64},       {0x40},       {0x41},
      {0x48},       {0x66, 0x48}, {0x67, 0x48}, {0x66, 0x67}, {0xf2, 0x48},
      {0xf3, 0x48}, {0x66, 0xf2}, {0x66, 0xf3}, {0x48, 0x66}};
  const std::vector<Bytes> modrms = ModRms();
  for (const Bytes& prefix : prefixes) {
    for (const Bytes& escape :
         {Bytes{}, Bytes{0x0f}, Bytes{0x0f, 0x38}, Bytes{0x0f, 0x3a}}) {
      for (unsigned code = 0; code < 256; ++code) {
        for (const Bytes& modrm : modrms) {
          Check(Join({prefix, escape, {static_cast<uint8_t>(code)}, modrm}));
        }
      }
    }
  }
  Check({0x8f, 0xe9, 0x78, 0x90, 0xc1});  // as XOP: VPROTB
  EXPECT_EQ(classes_.size(), 9u) << "of every branch class";
  EXPECT_GT(known_, 2'000'000u);
  for (const Excuse excuse :
       {Excuse::kUndefined, Excuse::kNear16, Excuse::kOperandSize, Excuse::kXop,
        Excuse::kSse4a}) {
    EXPECT_GT(excused_[excuse], 0u) << static_cast<int>(excuse);
  }
}

TEST_F(DifferentialTest, VexInEveryMapWithEveryPayload) {
  const std::vector<Bytes> modrms = {{0x00},       {0x0c, 0x08}, {0x0c, 0x25},
                                     {0x44, 0x25}, {0x84, 0x08}, {0xc1},
                                     {0x05},       {0xd0},       {0x14, 0x25}};
  for (unsigned payload = 0; payload < 256; ++payload) {
    const auto p = static_cast<uint8_t>(payload);
    for (unsigned code = 0; code < 256; ++code) {
      for (const Bytes& modrm : modrms) {
        const Bytes rest = Join({{p, static_cast<uint8_t>(code)}, modrm});
        Check(Join({{0xc5}, rest}));
        for (const uint8_t map : Bytes{1, 2, 3}) {
          for (const uint8_t inverted : Bytes{0xe0, 0xa0, 0x00}) {
            Check(Join({{0xc4, static_cast<uint8_t>(inverted | map)}, rest}));
          }
        }
      }
    }
  }
  EXPECT_GT(known_, 400'000u);
  EXPECT_EQ(classes_.size(), 1u) << "none of them is a branch";
  EXPECT_EQ(excused_.size(), 0u);
}

TEST_F(DifferentialTest, EvexInEveryMap) {
  const std::vector<Bytes> modrms = {
      {0x00}, {0x0c, 0x25}, {0x44, 0x08}, {0xc1}};
  for (unsigned payload = 0; payload < 256; ++payload) {
    for (unsigned code = 0; code < 256; ++code) {
      for (const uint8_t map : Bytes{1, 2, 3}) {
        for (const uint8_t inverted : Bytes{0xf0, 0x00}) {
          for (const uint8_t last : Bytes{0x08, 0x28, 0x48, 0x18, 0x89}) {
            for (const Bytes& modrm : modrms) {
              Check(Join({{0x62, static_cast<uint8_t>(inverted | map),
                           static_cast<uint8_t>(payload), last,
                           static_cast<uint8_t>(code)},
                          modrm}));
            }
          }
        }
      }
    }
  }
  EXPECT_GT(known_, 40'000u);
  EXPECT_EQ(classes_.size(), 1u) << "none of them is a branch";
  EXPECT_EQ(excused_.size(), 1u);
  EXPECT_GT(excused_[Excuse::kRounding], 0u);
}

// How many.
class RandomBytesTest : public DifferentialTest,
                        public testing::WithParamInterface<int> {};

TEST_P(RandomBytesTest, AgreeWithCapstone) {
  constexpr uint8_t kOften[] = {0x66, 0x67, 0xf2, 0xf3, 0x2e, 0x3e, 0xf0,
                                0x48, 0x41, 0x0f, 0xc4, 0xc5, 0x62};
  for (int i = 0; i < GetParam(); ++i) {
    Bytes bytes;
    for (uint64_t n = random_.Below(4); n > 0; --n) {
      bytes.push_back(kOften[random_.Below(sizeof kOften)]);
    }
    Check(bytes);
  }
  EXPECT_EQ(classes_.size(), 9u) << "of every branch class";
  EXPECT_GT(3 * known_, static_cast<uint64_t>(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Few, RandomBytesTest, testing::Values(300'000));
// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, RandomBytesTest, testing::Values(3'000'000));

}  // namespace
}  // namespace clew::x86
