// Goal: after a redaction no file of the bundle has a dropped value or the
// bytes of a dropped segment, everything else is as it was, and the manifest
// says what was done; a crash at any moment is made good by the next call.
// Method: a bundle made here, with secrets in every place that may hold one;
// all its files are searched afterwards. File operations fail one after
// another.

#include "recorder/redaction/redaction.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/procfs.h>
#include <sys/user.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>

#include "bundle/core_dump/core_dump.h"
#include "bundle/manifest/manifest_edit.h"
#include "proto/bundle.pb.h"
#include "tests/support/core_maker.h"
#include "tests/support/failing_files.h"
#include "tests/support/stack_page.h"

namespace clew::recorder {
namespace {

using bundle::CoreDump;
using bundle::EditManifest;
using bundle::ManifestEdits;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr uint64_t kStackAt = 0x7000'0000;
constexpr uint64_t kHeapAt = 0x5000'0000;
constexpr uint64_t kArenaAt = 0x6000'0000;
constexpr uint64_t kCodeAt = 0x4000'0000;
constexpr uint64_t kPage = 4096;
constexpr const char* kToken = "tok-5e3a91bc77";
constexpr const char* kPassword = "hunter2-correct-horse";
constexpr const char* kShort = "s3cr";  // too short to be looked for

const std::vector<std::string> kArguments = {"prog", "--password", kPassword,
                                             "--mode=fast"};
const std::vector<std::string> kEnvironment = {
    "HOME=/home/user", std::string("API_TOKEN=") + kToken,
    std::string("PIN_TOKEN=") + kShort};

const Elf64_auxv_t kAuxv[] = {
    {.a_type = AT_PAGESZ, .a_un = {.a_val = kPage}},
    {.a_type = AT_RANDOM, .a_un = {.a_val = kStackAt + 0x800}},
    {.a_type = AT_NULL, .a_un = {.a_val = 0}}};

// A copy of a value, and something that is to stay.
std::string HeapPage() {
  std::string page(kPage, '\0');
  PutText(page, 0x10, std::string("Bearer ") + kToken + "; kept in the heap");
  return page;
}

struct Piece {
  uint64_t addr;
  uint32_t flags;
  std::string bytes;
};

std::vector<Piece> Pieces() {
  return {{kCodeAt, PF_R | PF_X, std::string(kPage, 'c')},
          {kHeapAt, PF_R | PF_W, HeapPage()},
          {kArenaAt, PF_R | PF_W, std::string(kPage, 'a')},
          {kStackAt, PF_R | PF_W,
           StackPage(kStackAt, kArguments, kEnvironment, kAuxv)}};
}

void AddNotes(CoreMaker& core) {
  elf_prstatus status = {};
  status.pr_pid = 7;
  user_regs_struct regs = {};
  regs.rsp = kStackAt + 0x80;
  std::memcpy(&status.pr_reg, &regs, sizeof regs);
  core.AddNote(NT_PRSTATUS, BytesOf(status));
  elf_prpsinfo info = {};
  std::strcpy(info.pr_psargs, "prog --password hunter2-correct-horse");
  core.AddNote(NT_PRPSINFO, BytesOf(info));
  core.AddNote(NT_AUXV, BytesOf(kAuxv));
  // Parts of values, as a copy of it leaves them in a register.
  std::string registers(600, '\0');
  registers.replace(160, 12, kToken, 12);
  registers.replace(464, 8, "XCR0XCR0");
  registers.replace(500, 16, kPassword, 16);
  core.AddNote(NT_X86_XSTATE, registers);
  std::string files;
  for (const uint64_t value :
       {uint64_t{1}, kPage, kCodeAt, kCodeAt + kPage, uint64_t{0}}) {
    files += BytesOf(value);
  }
  core.AddNote(NT_FILE, files + "/usr/bin/prog" + '\0');
}

std::string CoreFile() {
  CoreMaker core(kPage);
  AddNotes(core);
  for (const Piece& piece : Pieces()) {
    core.AddMemory(piece.addr, piece.flags, piece.bytes);
  }
  return core.File();
}

pb::Start StartMessage() {
  pb::Start start;
  start.set_thread(7);
  for (int i = 0; i < 16; ++i) {
    start.add_gpr(i == 4 ? kStackAt + kArgcInPage : 0);
  }
  start.set_brk(kHeapAt);
  for (const Piece& piece : Pieces()) {
    pb::Segment* segment = start.add_segments();
    segment->set_addr(piece.addr);
    segment->set_size_bytes(piece.bytes.size());
    segment->set_prot((piece.flags & PF_W) != 0 ? 3 : 5);
    segment->set_data(piece.bytes);
  }
  return start;
}

class RedactionTest : public testing::Test {
 protected:
  void SetUp() override { Make(); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // A new bundle.
  void Make() {
    std::filesystem::remove_all(folder_);
    folder_ = testing::TempDir() + "clew-redaction-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    Write("core", CoreFile());
    Write("start.pb", StartMessage().SerializeAsString());
    Write("inputs.pb", std::string("some bytes, ") + kToken + ", more");
    Write("perf.data", std::string("PERFILE2 prog --password ") + kPassword);
    pb::Manifest manifest;
    manifest.set_format_version(1);
    for (const std::string& word : kArguments) {
      manifest.add_command(word);
    }
    // A field that this version does not know.
    Write("manifest.pb", manifest.SerializeAsString() + "\xfa\x3f\x03new");
  }
  void Write(const std::string& name, const std::string& bytes) {
    ASSERT_TRUE(WriteWholeFile(PosixFileSystem(), folder_ + "/" + name,
                               std::as_bytes(std::span(bytes))));
  }
  std::string Read(const std::string& name) const {
    const auto bytes = ReadWholeFile(folder_ + "/" + name);
    return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()),
                               bytes->size())
                 : "(cannot be read)";
  }
  pb::Manifest ReadManifest() const {
    pb::Manifest manifest;
    EXPECT_TRUE(manifest.ParseFromString(Read("manifest.pb")));
    return manifest;
  }
  std::vector<std::string> Lines() const {
    const pb::Manifest manifest = ReadManifest();
    return {manifest.redactions().begin(), manifest.redactions().end()};
  }
  // Files of the bundle that have `text`.
  std::vector<std::string> FilesWith(const std::string& text) const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      const std::string name = entry.path().filename();
      if (Read(name).find(text) != std::string::npos) {
        found.push_back(name);
      }
    }
    return found;
  }
  Result<std::vector<std::string>> Apply(const std::string& text,
                                         FileSystem& files) {
    const auto rules = RedactionRules::Parse(text, "rules");
    EXPECT_TRUE(rules) << rules.error().message;
    return Redact(files, folder_, *rules);
  }
  Result<std::vector<std::string>> Apply(const std::string& text) {
    return Apply(text, PosixFileSystem());
  }
  Result<CoreDump> Core() const { return CoreDump::Open(folder_ + "/core"); }
  std::string folder_;
};

TEST_F(RedactionTest, ValuesOfVariablesAreNowhereAndTheRestStays) {
  EXPECT_THAT(FilesWith(kToken), Not(IsEmpty()));
  const auto lines = Apply("environment drop *TOKEN*");
  ASSERT_TRUE(lines) << lines.error().message;
  EXPECT_THAT(Lines(), testing::ElementsAreArray(*lines));
  EXPECT_THAT(*lines,
              ElementsAre("environment: values of \"API_TOKEN\", \"PIN_TOKEN\"",
                          HasSubstr("copies")));
  EXPECT_THAT(FilesWith(kToken), IsEmpty());
  EXPECT_THAT(FilesWith(std::string("PIN_TOKEN=") + kShort), IsEmpty());
  EXPECT_THAT(FilesWith(std::string(kToken).substr(0, 12)), IsEmpty());
  EXPECT_THAT(FilesWith("XCR0XCR0"), ElementsAre("core"));
  // Names, other variables, arguments, and what is beside a copy.
  EXPECT_THAT(FilesWith("API_TOKEN=xxxxxxxxxxxxxx"), Contains("core"));
  EXPECT_THAT(FilesWith("HOME=/home/user"), Contains("start.pb"));
  EXPECT_THAT(FilesWith(kPassword), Contains("perf.data"));
  EXPECT_THAT(FilesWith("; kept in the heap"), Contains("core"));
  EXPECT_THAT(Read("manifest.pb"), HasSubstr("new"));
  EXPECT_TRUE(Core()) << Core().error().message;
}

TEST_F(RedactionTest, ValuesOfOptionsAreNowhere) {
  ASSERT_TRUE(Apply("arguments drop-after --password,--mode"));
  EXPECT_THAT(FilesWith(kPassword), IsEmpty());
  EXPECT_THAT(FilesWith("hunter2"), IsEmpty());
  EXPECT_THAT(FilesWith("--mode=fast"), IsEmpty());
  EXPECT_THAT(FilesWith(kToken), Contains("inputs.pb"));
  const pb::Manifest manifest = ReadManifest();
  EXPECT_THAT(
      std::vector<std::string>(manifest.command().begin(),
                               manifest.command().end()),
      ElementsAre("prog", "--password",
                  std::string(std::strlen(kPassword), 'x'), "--mode=xxxx"));
}

// What a run is repeated with has every value once more.
TEST_F(RedactionTest, SettingsAreTakenOutWhateverTheRules) {
  pb::Manifest manifest = ReadManifest();
  manifest.mutable_settings()->add_environment("SECRET=1");
  Write("manifest.pb", manifest.SerializeAsString());
  const auto lines = Apply("# nothing\n");
  ASSERT_TRUE(lines) << lines.error().message;
  EXPECT_THAT(*lines, ElementsAre(HasSubstr("settings")));
  EXPECT_FALSE(ReadManifest().has_settings());
  EXPECT_THAT(FilesWith("SECRET"), IsEmpty());
}

// A short value is found where its name is before it.
TEST_F(RedactionTest, ShortValuesAreNowhereBehindTheirNames) {
  Write("perf.data", "PERFILE2 prog --mode=fast, fast");
  ASSERT_TRUE(Apply("arguments drop-value *MODE"));
  EXPECT_EQ(Read("perf.data"), "PERFILE2 prog --mode=xxxx, fast");
  EXPECT_THAT(FilesWith("--mode=fast"), IsEmpty());
}

TEST_F(RedactionTest, DroppedSegmentsHaveNoBytesAndTheDumpIsWhole) {
  struct Case {
    const char* rules;
    std::vector<uint64_t> without;
  };
  const Case cases[] = {
      {"core drop [heap]", {kHeapAt}},
      {"core drop anonymous", {kHeapAt, kArenaAt}},
      {"core keep [heap]\ncore drop anonymous", {kArenaAt}},
      {"core drop [stack]", {kStackAt}},
      {"core drop file", {kCodeAt}},
      {"core drop /usr/*", {kCodeAt}},
      {"core drop /opt/*", {}},
      {"core drop all", {kCodeAt, kHeapAt, kArenaAt, kStackAt}},
      {"core keep [stack],file\ncore drop all", {kHeapAt, kArenaAt}},
      {"# nothing\n\n", {}}};
  for (const Case& c : cases) {
    Make();
    const auto lines = Apply(c.rules);
    ASSERT_TRUE(lines) << lines.error().message;
    EXPECT_EQ(lines->empty(), c.without.empty()) << c.rules;
    const auto core = Core();
    ASSERT_TRUE(core) << core.error().message;
    ASSERT_EQ(core->segments().size(), 4u);
    EXPECT_EQ(core->threads()[0].gpr[kRsp], kStackAt + 0x80);
    for (const Piece& piece : Pieces()) {
      const bool dropped = std::ranges::count(c.without, piece.addr) != 0;
      std::string bytes(kPage, '\0');
      EXPECT_EQ(core->Read(TraceeAddr(piece.addr),
                           std::as_writable_bytes(std::span(bytes))),
                !dropped)
          << c.rules << " at " << piece.addr;
      EXPECT_TRUE(dropped || bytes == piece.bytes) << c.rules;
      // Not merely unreachable.
      EXPECT_EQ(Read("core").find(piece.bytes) == std::string::npos, dropped)
          << c.rules;
    }
  }
}

// Of a process that was attached to: its stack pointer is anywhere, and its
// vector registers hold what it copied last.
TEST_F(RedactionTest, ValuesAreFoundAndClearedInAnAttachedProcessToo) {
  std::filesystem::remove(folder_ + "/core");
  const std::string registers = std::string(600, '\0') + kToken;
  pb::Start start = StartMessage();
  start.set_gpr(4, kHeapAt);
  start.set_initial_stack(kStackAt + kArgcInPage);
  start.set_xsave(registers);
  start.add_other_threads()->set_xsave(registers);
  Write("start.pb", start.SerializeAsString());
  ASSERT_TRUE(Apply("environment drop *TOKEN*"));
  EXPECT_THAT(FilesWith(kToken), IsEmpty());
  pb::Start redacted;
  ASSERT_TRUE(redacted.ParseFromString(Read("start.pb")));
  EXPECT_TRUE(redacted.xsave().empty());
  ASSERT_EQ(redacted.other_threads_size(), 1);
  EXPECT_TRUE(redacted.other_threads(0).xsave().empty());
}

TEST_F(RedactionTest, StartAndInputsCanBeLeftOut) {
  const auto lines = Apply("start drop\ninputs drop");
  ASSERT_TRUE(lines);
  EXPECT_EQ(lines->size(), 2u);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/start.pb"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/inputs.pb"));
}

TEST_F(RedactionTest, ASecondTimeThereIsNothingToDo) {
  const char* rules =
      "environment drop *TOKEN*\narguments drop-after --password\n"
      "core drop [heap]";
  ASSERT_TRUE(Apply(rules));
  const std::string manifest = Read("manifest.pb");
  const std::string core = Read("core");
  const auto again = Apply(rules);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_THAT(*again, IsEmpty());
  EXPECT_EQ(Read("manifest.pb"), manifest);
  EXPECT_EQ(Read("core"), core);
}

// A failed operation, then the program again: as if nothing had happened.
TEST_F(RedactionTest, IsRepeatableAfterAFailureAnywhere) {
  const char* rules =
      "environment drop *TOKEN*\narguments drop-after --password\n"
      "core drop [heap]";
  ASSERT_TRUE(Apply(rules));
  const std::string core = Read("core");
  const std::string start = Read("start.pb");
  bool finished = false;
  int works = 0;
  for (; !finished; ++works) {
    ASSERT_LT(works, 200);
    Make();
    test::FailingFiles files(works);
    finished = Apply(rules, files).has_value();
    ASSERT_TRUE(Apply(rules)) << works;
    EXPECT_THAT(FilesWith(kToken), IsEmpty()) << works;
    EXPECT_THAT(FilesWith(kPassword), IsEmpty()) << works;
    EXPECT_EQ(Read("core"), core) << works;
    EXPECT_EQ(Read("start.pb"), start) << works;
    EXPECT_THAT(Lines(), Contains("core: [heap], 1 segments, 4096 bytes"));
    EXPECT_THAT(Lines(), Contains(HasSubstr("\"API_TOKEN\""))) << works;
  }
  EXPECT_GT(works, 20);
}

TEST_F(RedactionTest, WhatCannotBeAppliedIsRefusedAndNothingChanges) {
  const auto refusal = [this](const char* rules) {
    const std::string before = Read("core") + Read("manifest.pb");
    const auto lines = Apply(rules);
    EXPECT_EQ(Read("core") + Read("manifest.pb"), before);
    return lines ? "(applied)" : lines.error().message;
  };
  Write("schedule.pb", "");
  EXPECT_THAT(refusal("core drop all"), HasSubstr("solved"));
  std::filesystem::remove(folder_ + "/schedule.pb");
  std::filesystem::remove(folder_ + "/start.pb");
  EXPECT_THAT(refusal("core drop [heap]"), HasSubstr("name anonymous"));
  // The environment is found by the core dump alone as well.
  EXPECT_TRUE(Apply("environment drop *TOKEN*"));
  EXPECT_THAT(FilesWith(kToken), IsEmpty());
  // Where the stack does not show it, nobody may think that it is gone.
  std::string core = CoreFile();
  const std::string auxv = BytesOf(kAuxv);
  core.replace(core.rfind(auxv), 8, "????????");
  Write("core", core);
  EXPECT_THAT(refusal("environment drop *TOKEN*"),
              HasSubstr("auxiliary vector"));
  Write("core", CoreFile().substr(0, 300));
  EXPECT_THAT(refusal("core drop all"), HasSubstr("left as it is"));
  // Two segments, and notes and headers, that are the same bytes of the file.
  core = CoreFile();
  const auto header_at = [](size_t index) {
    return sizeof(Elf64_Ehdr) + index * sizeof(Elf64_Phdr);
  };
  const size_t offset_at = offsetof(Elf64_Phdr, p_offset);
  core.replace(header_at(2) + offset_at, 8,
               core.substr(header_at(3) + offset_at, 8));
  Write("core", core);
  EXPECT_THAT(refusal("core drop all"), HasSubstr("same bytes"));
  core = CoreFile();
  core.replace(header_at(1), sizeof(Elf64_Phdr),
               core.substr(header_at(0), sizeof(Elf64_Phdr)));
  Write("core", core);
  EXPECT_THAT(refusal("arguments drop-after --password"),
              HasSubstr("same bytes"));
  Write("core.zst", "");
  EXPECT_THAT(refusal("core drop all"), HasSubstr("unpack it"));
}

TEST(RedactionRulesTest, FaultsAreNamedWithTheirLine) {
  const auto fault = [](const std::string& text) {
    const auto rules = RedactionRules::Parse(text, "f.rules");
    return rules ? "(parsed)" : rules.error().message;
  };
  EXPECT_THAT(fault("core drop all\ncore lose all"), HasSubstr("line 2"));
  EXPECT_THAT(fault("core drop heap"), HasSubstr("no part of a core dump"));
  EXPECT_THAT(fault("core drop a b"), HasSubstr("line 1"));
  EXPECT_THAT(fault("environmnet drop *"), HasSubstr("begins no rule"));
  EXPECT_THAT(fault("start keep"), HasSubstr("begins no rule"));
  EXPECT_THAT(fault("arguments drop --x"), HasSubstr("begins no rule"));
  EXPECT_THAT(fault(std::string(RedactionRules::kTextBytesMax + 1, '#')),
              HasSubstr("at most"));
}

TEST(RedactionRulesTest, TheFirstRuleThatMatchesDecides) {
  const auto rules = RedactionRules::Parse(
      "environment keep PATH,LC_*  # not secret\nenvironment drop *", "r");
  ASSERT_TRUE(rules);
  EXPECT_FALSE(rules->DropsVariable("PATH"));
  EXPECT_FALSE(rules->DropsVariable("LC_ALL"));
  EXPECT_TRUE(rules->DropsVariable("HOME"));
  EXPECT_FALSE(RedactionRules().DropsVariable("HOME"));
}

TEST(RedactionRulesTest, ValuesInACommandLineAreFoundByTheirNames) {
  const auto rules = RedactionRules::Parse(
      "arguments drop-after -*token\narguments drop-value *token,*_pass", "r");
  ASSERT_TRUE(rules);
  // What is left of the words, and "~" where something was taken out.
  const auto left = [&](std::vector<std::string> words) {
    for (const DroppedArgument& dropped : rules->DroppedIn(words)) {
      words[dropped.index].resize(dropped.from);
      words[dropped.index] += '~';
    }
    return words;
  };
  EXPECT_THAT(left({"p", "--Api-TOKEN", "x", "y"}),
              ElementsAre("p", "--Api-TOKEN", "~", "y"));
  EXPECT_THAT(left({"p", "--token"}), ElementsAre("p", "--token"));
  EXPECT_THAT(left({"p", "--token=a=b"}), ElementsAre("p", "--token=~"));
  EXPECT_THAT(left({"p", "--env=DB_PASS=x"}),
              ElementsAre("p", "--env=DB_PASS=~"));
  EXPECT_THAT(left({"p", "host=db db_pass=x user=u"}),
              ElementsAre("p", "host=db db_pass=~"));
  EXPECT_THAT(left({"p", "X-Token: x"}), ElementsAre("p", "X-Token:~"));
  // No value is named: a word alone, a file, another name.
  EXPECT_THAT(left({"token", "x"}), ElementsAre("token", "x"));
  EXPECT_THAT(left({"p", "--token-file=/x", "--mode=token"}),
              ElementsAre("p", "--token-file=/x", "--mode=token"));
}

TEST(RedactionRulesTest, WhatIsDroppedIsSoInAnyCaseWhatIsKeptIsExact) {
  const auto rules = RedactionRules::Parse(
      "environment keep Api_Key\nenvironment drop API_KEY", "r");
  ASSERT_TRUE(rules);
  EXPECT_FALSE(rules->DropsVariable("Api_Key"));
  EXPECT_TRUE(rules->DropsVariable("api_key"));
}

// Every field of an edit arrives, what it does not name stays, and a failure of
// any operation leaves the old manifest or the new one.
TEST_F(RedactionTest, AnEditOfTheManifestIsWholeAndLeavesTheRest) {
  const ManifestEdits edits = {
      .trigger = Trigger{.kind = TriggerKind::kUnitFailed,
                         .unit = "a.service",
                         .process = 12,
                         .at_ns = 34,
                         .not_saved = 56},
      .sufficiency = Sufficiency{.score = 70,
                                 .decodes = true,
                                 .images_missing = 1,
                                 .gaps = 2,
                                 .gaps_at_failure = 3,
                                 .reasons = {"a", "b"}},
      .redactions = {"core: x"}};
  const std::string before = Read("manifest.pb");
  for (int works = 0;; ++works) {
    ASSERT_LT(works, 20);
    test::FailingFiles files(works);
    if (EditManifest(files, folder_, edits)) {
      EXPECT_GT(works, 3);
      break;
    }
    if (Read("manifest.pb") != before) {
      EXPECT_EQ(ReadManifest().trigger().unit(), "a.service");
      Write("manifest.pb", before);
    }
  }
  pb::Manifest manifest = ReadManifest();
  EXPECT_EQ(manifest.trigger().kind(), pb::Trigger::KIND_UNIT_FAILED);
  EXPECT_EQ(manifest.trigger().not_saved(), 56u);
  EXPECT_EQ(manifest.sufficiency().score(), 70u);
  EXPECT_EQ(manifest.sufficiency().reasons_size(), 2);
  EXPECT_EQ(manifest.command_size(), 4);
  EXPECT_THAT(Lines(), ElementsAre("core: x"));
  EXPECT_THAT(Read("manifest.pb"), HasSubstr("new"));  // the unknown field

  // A later one replaces lists of reasons and adds to redactions.
  ASSERT_TRUE(EditManifest(PosixFileSystem(), folder_,
                           {.sufficiency = Sufficiency{.reasons = {"c"}},
                            .redactions = {"core: y"}}));
  manifest = ReadManifest();
  EXPECT_THAT(std::vector<std::string>(manifest.sufficiency().reasons().begin(),
                                       manifest.sufficiency().reasons().end()),
              ElementsAre("c"));
  EXPECT_EQ(manifest.trigger().process(), 12);
  EXPECT_THAT(Lines(), ElementsAre("core: x", "core: y"));

  const auto refused =
      EditManifest(PosixFileSystem(), folder_, {.redactions = {"\xff"}});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("UTF-8"));
  Write("schedule.pb", "");
  EXPECT_FALSE(EditManifest(PosixFileSystem(), folder_, edits));
}

}  // namespace
}  // namespace clew::recorder
