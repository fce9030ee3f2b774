// Goal: the reader of core dumps gives back what is in one, and refuses what is
// cut or contradicts itself with a place, without a look behind its end.
// Method: dumps made here, whose last bytes are the ones in question; every cut
// of them, in memory that ends where they do (AddressSanitizer watches).

#include "bundle/core_dump/core_dump.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/procfs.h>
#include <sys/user.h>

#include <array>
#include <cstring>

#include "common/digest.h"
#include "tests/support/core_maker.h"
#include "tests/support/exact_bytes.h"

namespace clew::bundle {
namespace {

using testing::HasSubstr;

std::string Prstatus() {
  elf_prstatus status = {};
  status.pr_pid = 77;
  user_regs_struct registers = {};
  registers.rip = 0x401234;
  registers.rax = 42;
  std::memcpy(&status.pr_reg, &registers, sizeof registers);
  return BytesOf(status);
}

TEST(CoreDumpTest, RegistersAndMemoryComeBack) {
  CoreMaker maker;
  maker.AddNote(NT_PRSTATUS, Prstatus());
  maker.AddMemory(0x10000, PF_R | PF_W, "hello", 4096);
  const auto bytes = ExactBytes(maker.File());
  const auto core = CoreDump::Over(bytes, "core");
  ASSERT_TRUE(core) << core.error().message;
  ASSERT_EQ(core->threads().size(), 1u);
  EXPECT_EQ(core->threads()[0].thread, Tid(77));
  EXPECT_EQ(core->threads()[0].rip, TraceeAddr(0x401234));
  EXPECT_EQ(core->threads()[0].gpr[kRax], 42u);
  std::array<std::byte, 4> out = {};
  ASSERT_TRUE(core->Read(TraceeAddr(0x10001), out));
  EXPECT_EQ(std::memcmp(out.data(), "ello", 4), 0);
  EXPECT_FALSE(core->Read(TraceeAddr(0x10002), out));  // not dumped
  EXPECT_FALSE(core->Read(TraceeAddr(0xffff), out));
}

// A list of `mapped` files, named "f".
std::string FileNote(uint64_t mapped) {
  std::string note = BytesOf(mapped) + BytesOf(uint64_t{4096});
  for (uint64_t i = 0; i < mapped; ++i) {
    note += BytesOf(0x1000 * (i + 1)) + BytesOf(0x1000 * (i + 2)) +
            BytesOf(uint64_t{0});
  }
  for (uint64_t i = 0; i < mapped; ++i) {
    note.append("f", 2);
  }
  return note;
}

struct LastNote {
  const char* name;
  uint32_t type;
  std::string desc;
  const char* told;  // of one that is too short
};
void PrintTo(const LastNote& note, std::ostream* out) { *out << note.name; }

class NoteTest : public testing::TestWithParam<LastNote> {};

std::vector<std::byte> EndingIn(uint32_t type, const std::string& desc) {
  CoreMaker maker;
  if (type != NT_PRSTATUS) {
    maker.AddNote(NT_PRSTATUS, Prstatus());
  }
  maker.AddNote(type, desc);
  return ExactBytes(maker.File());
}

TEST_P(NoteTest, EachCutIsRefused) {
  const LastNote& note = GetParam();
  const auto whole = EndingIn(note.type, note.desc);
  const auto core = CoreDump::Over(whole, "core");
  ASSERT_TRUE(core.has_value()) << core.error().message;
  for (size_t size = 0; size < note.desc.size(); ++size) {
    const auto bytes = EndingIn(note.type, note.desc.substr(0, size));
    const auto cut = CoreDump::Over(bytes, "core");
    ASSERT_FALSE(cut.has_value()) << size;
    EXPECT_THAT(cut.error().message, HasSubstr("core: offset 0x"));
    EXPECT_THAT(cut.error().message, HasSubstr(note.told));
  }
}

INSTANTIATE_TEST_SUITE_P(
    , NoteTest,
    testing::Values(LastNote{"Prstatus", NT_PRSTATUS, Prstatus(),
                             "NT_PRSTATUS has "},
                    LastNote{"Siginfo", NT_SIGINFO, BytesOf(siginfo_t()),
                             "NT_SIGINFO has "},
                    LastNote{"File", NT_FILE, FileNote(3), "NT_FILE "}),
    [](const auto& note) { return note.param.name; });

// Entries of an auxiliary vector are as many as there are.
TEST(CoreDumpTest, AnAuxiliaryVectorHasWholeEntries) {
  const std::string vector = BytesOf(Elf64_auxv_t{AT_ENTRY, {0x401000}}) +
                             BytesOf(Elf64_auxv_t{AT_PAGESZ, {4096}});
  for (size_t size = 0; size <= vector.size(); ++size) {
    const auto bytes = EndingIn(NT_AUXV, vector.substr(0, size));
    const auto core = CoreDump::Over(bytes, "core");
    ASSERT_EQ(core.has_value(), size % sizeof(Elf64_auxv_t) == 0) << size;
    if (core) {
      EXPECT_EQ(core->entry(), TraceeAddr(size == 0 ? 0 : 0x401000));
    } else {
      EXPECT_THAT(core.error().message,
                  HasSubstr(fmt::format("NT_AUXV has {} bytes", size)));
    }
  }
}

// Headers, notes and memory.
TEST(CoreDumpTest, EachCutOfTheFileIsRefused) {
  CoreMaker maker;
  maker.AddNote(NT_PRSTATUS, Prstatus());
  maker.AddNote(NT_FILE, FileNote(1));
  maker.AddMemory(0x10000, PF_R | PF_W, "hello", 4096);
  const std::string file = maker.File();
  for (size_t size = 0; size < file.size(); ++size) {
    const auto bytes = ExactBytes(std::string_view(file).substr(0, size));
    const auto core = CoreDump::Over(bytes, "core");
    ASSERT_FALSE(core.has_value()) << size;
    EXPECT_THAT(core.error().message, HasSubstr("core: "));
  }
}

TEST(CoreDumpTest, DamagedDumpsAreReadOrRefused) {
  CoreMaker maker;
  maker.AddNote(NT_PRSTATUS, Prstatus());
  maker.AddNote(NT_SIGINFO, BytesOf(siginfo_t()));
  maker.AddNote(NT_FILE, FileNote(2));
  maker.AddMemory(0x10000, PF_R | PF_W, "hello", 4096);
  const std::string whole = maker.File();
  Random random(1);
  uint64_t refused = 0;
  for (int i = 0; i < 2000; ++i) {
    auto bytes = ExactBytes(whole);
    bytes[random.Below(bytes.size())] ^=
        static_cast<std::byte>(1u << random.Below(8));
    const auto core = CoreDump::Over(bytes, "core");
    refused += core.has_value() ? 0 : 1;
    std::array<std::byte, 5> out = {};
    if (core) {
      (void)core->Read(TraceeAddr(0x10000), out);
    }
  }
  EXPECT_GT(refused, 200u);
}

}  // namespace
}  // namespace clew::bundle
