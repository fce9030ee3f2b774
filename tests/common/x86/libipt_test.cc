// Goal: lengths and branch classes agree with libipt, which decodes what the
// encoder writes, on every instruction.
// Method: every opcode of one and two bytes with every ModRM byte; a linear
// sweep over the code of libc (what follows data in it may be no code, which is
// as good); random bytes behind random prefixes. Direct targets are covered by
// core_encoder_test, whose programs run through them.
// Oracle: libipt's instruction decoder. Lengths are compared where Capstone
// knows the instruction.

#include <dlfcn.h>
#include <elf.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>
#include <intel-pt.h>

#include <cstring>
#include <map>

#include "common/digest.h"
#include "common/os/file.h"
#include "common/x86/branch.h"
#include "common/x86/layout.h"
#include "tests/common/x86/capstone_oracle.h"
#include "tests/recorder/pt_encoder/ipt_decode.h"
#include "tests/support/hex.h"

namespace clew::x86 {
namespace {

using recorder::CodeImage;
using recorder::CodeRegion;

int AsIptClass(BranchClass branch_class) {
  switch (branch_class) {
    case BranchClass::kConditional:
      return ptic_cond_jump;
    case BranchClass::kDirectJump:
    case BranchClass::kIndirectJump:
      return ptic_jump;
    case BranchClass::kDirectCall:
    case BranchClass::kIndirectCall:
      return ptic_call;
    case BranchClass::kReturn:
      return ptic_return;
    case BranchClass::kFar:
      return ptic_far_call;
    default:
      return ptic_other;
  }
}

// What the encoder does not tell apart.
int Merged(int iclass) {
  switch (iclass) {
    case ptic_far_return:
    case ptic_far_jump:
      return ptic_far_call;
    case ptic_ptwrite:
      return ptic_other;
    default:
      return iclass;
  }
}

// `insn` is what libipt takes for the instruction that `code` begins with. The
// length of what no CPU executes is anybody's guess; Capstone knows only what
// one does.
void ExpectLength(std::span<const uint8_t> insn,
                  std::span<const uint8_t> code) {
  static CapstoneOracle capstone;
  const Layout layout = ScanLayout(code);
  // PadLock of CPUs by VIA; libipt knows those by Intel.
  const bool padlock = layout.opcode.IsLegacy(OpcodeMap::k0F) &&
                       (layout.opcode.code & 0xfe) == 0xa6;
  if (layout.status != LayoutStatus::kUndefined && !padlock &&
      capstone.Disassemble(code)) {
    EXPECT_EQ(layout.length, insn.size()) << test::Hex(insn);
  }
}

// Classifies the instruction at `offset` both ways; returns its size, 0 if
// libipt cannot decode it.
size_t CompareAt(const CodeImage& image, size_t offset,
                 std::map<BranchClass, int>& counts) {
  const CodeRegion& region = image[0];
  const auto ipt = recorder::ClassifyWithIpt(image, region.addr + offset);
  if (!ipt) {
    return 0;
  }
  const auto insn = std::span(region.bytes).subspan(offset, ipt->size);
  const BranchClass ours = ClassifyBranch(insn).branch_class;
  EXPECT_EQ(AsIptClass(ours), Merged(ipt->iclass)) << test::Hex(insn);
  ExpectLength(insn, std::span(region.bytes).subspan(offset));
  ++counts[ours];
  return ipt->size;
}

// The .text section of the libc that this test runs with.
CodeImage LibcText() {
  Dl_info info = {};
  EXPECT_NE(dladdr(reinterpret_cast<void*>(&gnu_get_libc_version), &info), 0);
  const auto file = ReadWholeFile(info.dli_fname);
  EXPECT_TRUE(file.has_value());
  Elf64_Ehdr header;
  std::memcpy(&header, file->data(), sizeof header);
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, file->data() + header.e_shoff + i * sizeof section,
                sizeof section);
    if ((section.sh_flags & SHF_EXECINSTR) != 0 && section.sh_size > 100000) {
      const auto* begin =
          reinterpret_cast<const uint8_t*>(file->data() + section.sh_offset);
      return {{section.sh_addr, {begin, begin + section.sh_size}}};
    }
  }
  return {};
}

TEST(BranchClassTest, AgreesWithLibiptOnLibc) {
  const CodeImage image = LibcText();
  ASSERT_EQ(image.size(), 1u);
  std::map<BranchClass, int> counts;
  size_t undecoded = 0;
  for (size_t offset = 0; offset < image[0].bytes.size();) {
    const size_t size = CompareAt(image, offset, counts);
    undecoded += size == 0 ? 1 : 0;
    offset += size == 0 ? 1 : size;
  }
  EXPECT_LT(undecoded, 1000u);
  EXPECT_GT(counts[BranchClass::kNone], 100000);
  EXPECT_GT(counts[BranchClass::kConditional], 10000);
  EXPECT_GT(counts[BranchClass::kDirectJump], 5000);
  EXPECT_GT(counts[BranchClass::kDirectCall], 5000);
  EXPECT_GT(counts[BranchClass::kIndirectJump], 100);
  EXPECT_GT(counts[BranchClass::kIndirectCall], 100);
  EXPECT_GT(counts[BranchClass::kReturn], 1000);
  EXPECT_GT(counts[BranchClass::kFar], 100);
  EXPECT_GT(counts[BranchClass::kRepString], 10);
}

TEST(BranchClassTest, AgreesWithLibiptOnEveryOpcodeAndModRm) {
  std::map<BranchClass, int> counts;
  const std::vector<uint8_t> heads[] = {
      {}, {0xf3}, {0x0f}, {0xf3, 0x0f}, {0x66, 0x0f}, {0xf2, 0x48, 0x0f}};
  for (const std::vector<uint8_t>& head : heads) {
    CodeImage image = {{0x1000, head}};
    image[0].bytes.resize(kInsnBytesMax);
    for (unsigned both = 0; both < 0x10000; ++both) {
      image[0].bytes[head.size()] = static_cast<uint8_t>(both >> 8);
      image[0].bytes[head.size() + 1] = static_cast<uint8_t>(both);
      CompareAt(image, 0, counts);
    }
  }
  EXPECT_EQ(counts.size(), 9u);
}

TEST(BranchClassTest, AgreesWithLibiptOnRandomBytes) {
  constexpr uint64_t kSeed = 11;
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  constexpr uint8_t kPrefixes[] = {0x66, 0x67, 0xf2, 0xf3, 0x2e,
                                   0x3e, 0xf0, 0x48, 0x41, 0x0f};
  std::map<BranchClass, int> counts;
  for (int i = 0; i < 400000; ++i) {
    CodeImage image = {{0x1000, {}}};
    for (uint64_t n = random.Below(4); n > 0; --n) {
      image[0].bytes.push_back(kPrefixes[random.Below(sizeof kPrefixes)]);
    }
    while (image[0].bytes.size() < 16) {
      image[0].bytes.push_back(static_cast<uint8_t>(random.Next()));
    }
    CompareAt(image, 0, counts);
  }
  EXPECT_EQ(counts.size(), 9u);
}

TEST(BranchClassTest, Targets) {
  const auto target = [](std::initializer_list<uint8_t> bytes) {
    const std::vector<uint8_t> insn(bytes);
    return ClassifyBranch(insn).DirectTarget(TraceeAddr(0x1000)).as_int();
  };
  EXPECT_EQ(target({0x74, 0xfe}), 0xffeu);
  EXPECT_EQ(target({0x0f, 0x84, 0x00, 0x01, 0x00, 0x00}), 0x1100u);
  EXPECT_EQ(target({0xe9, 0xff, 0xff, 0xff, 0xff}), 0xfffu);
  EXPECT_EQ(target({0x66, 0x48, 0xe8, 0x10, 0x00, 0x00, 0x00}), 0x1010u);
  EXPECT_EQ(target({0xe3, 0x7f}), 0x107fu);
  EXPECT_EQ(target({0xc3}), 0x1000u);
}

TEST(BranchClassTest, PartsOfInstructionsAreNothing) {
  for (const std::vector<uint8_t>& part :
       std::vector<std::vector<uint8_t>>{{},
                                         {0x66},
                                         {0x0f},
                                         {0xff},
                                         {0xf3, 0x48},
                                         {0xe8},
                                         {0xe8, 1, 2, 3},
                                         {0x0f, 0x84},
                                         {0x0f, 0x01}}) {
    EXPECT_EQ(ClassifyBranch(part).branch_class, BranchClass::kNone)
        << test::Hex(part);
  }
}

}  // namespace
}  // namespace clew::x86
