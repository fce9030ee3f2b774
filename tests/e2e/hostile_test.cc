// Goal: whatever is done to one file of a bundle, clew ends by itself: with an
// answer (perhaps with gaps or a divergence), or with a message that names file
// and place and the exit code of its cause. Never by a signal, a hang, a
// sanitizer's report or a bug (70), but for `solve`, which may find that what
// is damaged is not what the program can have done.
// Method: every file of a recorded bundle truncated at evenly spread positions
// and with single bits flipped at random ones, opened by the commands that read
// that file, in turn. CLEW_HOSTILE_TRUNCATIONS (4) and CLEW_HOSTILE_FLIPS (15,
// or fewer where not every bit matters) per file; 200 and 1000 were tried, too.
// One test per file, so that --gtest_filter splits the work;
// CLEW_HOSTILE_BUNDLE then names a solved recording of the program to damage a
// copy of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <set>

#include "common/digest.h"
#include "common/result.h"
#include "proto/bundle.pb.h"
#include "tests/e2e/answering_program.h"
#include "tests/e2e/clew_command.h"
#include "tests/support/read_text.h"
#include "tests/support/write_text.h"

namespace clew::e2e {
namespace {

namespace fs = std::filesystem;
using test::ReadText;
using test::WriteText;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// What a sanitizer ends a program with: none of clew's own exit codes.
constexpr int kSanitizerExit = 99;
// Of what takes about one, sanitised: a hang takes longer.
constexpr int kOpenLimitSeconds = 300;
// By default: with fewer, none might be noticed.
constexpr uint64_t kFlips = 15;

using Command = std::vector<std::string>;

struct Target {
  const char* name;
  const char* file;  // its last component
  std::vector<Command> commands;
  bool every_bit_matters;  // some of a few flips must show
  // What a mapping has behind the end of its file is a gap, no error.
  bool is_image = false;
};

void PrintTo(const Target& target, std::ostream* out) { *out << target.file; }

const Command kDecode = {"decode", "--as", "none"};
const Command kInfo = {"info", "--no-backtraces"};
const Command kReplay = {"replay", "--once", "--json"};

const std::vector<Target>& Targets() {
  static const std::vector<Target> targets = {
      {"Manifest", "manifest.pb", {kInfo, kReplay}, true},
      {"PerfData", "perf.data", {kDecode, kReplay}, true},
      {"Start", "start.pb", {kReplay}, true},
      {"Inputs", "inputs.pb", {kReplay}, true},
      {"Schedule", "schedule.pb", {kReplay}, true},
      {"Core", "core", {kReplay}, false},
      {"Program", "bank", {kDecode, kReplay}, false, true},
      {"Loader", "ld-linux-x86-64.so.2", {kDecode, kReplay}, false, true},
      {"Libc", "libc.so.6", {kDecode, kReplay}, false, true}};
  return targets;
}

uint64_t CountFrom(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}
uint64_t Truncations() { return CountFrom("CLEW_HOSTILE_TRUNCATIONS", 4); }
uint64_t Flips(uint64_t otherwise) {
  return CountFrom("CLEW_HOSTILE_FLIPS", otherwise);
}

// A solved recording; each test leaves its files as it found them.
class SolvedBundle {
 public:
  SolvedBundle() : path_(scratch_.Path("b.clew")) {
    if (const char* solved = std::getenv("CLEW_HOSTILE_BUNDLE")) {
      fs::copy(solved, path_, fs::copy_options::recursive);
      ok_ = Succeeds({"replay", "--check", "1", path_});
      return;
    }
    ok_ = Succeeds({"record", "-o", path_, "--seed", "1", "--", Tracee("bank"),
                    "4"}) &&
          Solve();
  }
  // Of a process that was attached to for a second, with `more` options.
  SolvedBundle(const AnsweringProgram& program,
               const std::vector<std::string>& more)
      : path_(scratch_.Path("b.clew")) {
    Command record = {"record", "--source",       "step",      "-o", path_,
                      "--pid",  program.Number(), "--timeout", "1"};
    record.insert(record.end(), more.begin(), more.end());
    ok_ = Succeeds(record) && Solve();
  }
  bool ok() const { return ok_; }
  const std::string& path() const { return path_; }

  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(path_)) {
      if (entry.is_regular_file()) {
        files.push_back(entry.path());
      }
    }
    return files;
  }
  fs::path Find(const std::string& name) const {
    for (const fs::path& file : Files()) {
      if (file.filename() == name) {
        return file;
      }
    }
    return {};
  }

 private:
  bool Solve() const {
    return Succeeds({"solve", "--time-limit", fmt::to_string(kOwnLimitSeconds),
                     path_}) &&
           Succeeds({"replay", "--check", "1", path_});
  }
  static bool Succeeds(const Command& command) {
    const ProgramOutput output = Clew(command);
    EXPECT_EQ(output.exit_status, kExitOk) << output.text;
    return output.exit_status == kExitOk;
  }

  Scratch scratch_;
  std::string path_;
  bool ok_ = false;
};

class HostileTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string exits = fmt::format("exitcode={}", kSanitizerExit);
    // Who makes clew ask for this much memory has found something, too.
    setenv("ASAN_OPTIONS", (exits + ":hard_rss_limit_mb=4096").c_str(), 1);
    setenv("UBSAN_OPTIONS", exits.c_str(), 1);
    bundle_ = std::make_unique<SolvedBundle>();  // for all tests
  }
  static void TearDownTestSuite() { bundle_.reset(); }

  void SetUp() override { ASSERT_TRUE(bundle_->ok()); }

  // Opens the damaged bundle; `how` says what was done to it.
  void Open(const Command& command, const std::string& how) {
    Open(bundle_->path(), command, how);
  }
  void Open(const std::string& bundle, Command command,
            const std::string& how) {
    const std::string verb = command[0];
    command.insert(command.begin(), Binary());
    command.push_back(bundle);
    const ProgramOutput output = e2e::Run(command, kOpenLimitSeconds);
    SCOPED_TRACE(fmt::format("{}: {}: exit {}", verb, how, output.exit_status));
    ExpectAnEnd(verb, output);
    noticed_ += output.exit_status != kExitOk ||
                        (verb == "decode" &&
                         output.text.find(" 0 gaps") == std::string::npos)
                    ? 1
                    : 0;
    corrupt_ += output.exit_status == kExitCorrupt ? 1 : 0;
  }

  static void ExpectAnEnd(const std::string& verb,
                          const ProgramOutput& output) {
    std::set<int> allowed = {kExitOk, kExitEnvironment, kExitCorrupt};
    if (verb != "decode" && verb != "info") {
      allowed.insert(kExitFinding);
    }
    if (verb == "solve") {
      allowed.insert(kExitLimit);
    }
    if (output.exit_status == kExitBug && verb == "solve") {
      EXPECT_THAT(output.text,
                  HasSubstr("clew's model of the kernel or the CPU differs"));
      allowed.insert(kExitBug);
    }
    EXPECT_TRUE(allowed.contains(output.exit_status)) << output.text;
    EXPECT_THAT(output.text, Not(HasSubstr("Sanitizer")));
    EXPECT_THAT(output.text, Not(HasSubstr("runtime error")));
    if (output.exit_status == kExitCorrupt) {
      ExpectAPlace(output.text);
    } else if (output.exit_status == kExitEnvironment) {
      // What is damaged may look like something newer, or be a gap that cannot
      // be followed; nothing else is missing here.
      EXPECT_THAT(output.text,
                  ContainsRegex("format_version|unknown instruction|has a gap|"
                                "AUX area is of type [0-9]+, wanted 1|"
                                "thread [0-9]+: .* at 0x"));
    } else if (output.exit_status == kExitFinding && verb == "replay") {
      EXPECT_THAT(output.text, HasSubstr("\"divergence\": \""));
    } else if (output.exit_status == kExitOk && verb == "decode") {
      EXPECT_THAT(output.text, ContainsRegex("[0-9]+ gaps"));
    }
  }

  // A file of the bundle, and where in it: an offset, or a field with what was
  // found and wanted.
  static void ExpectAPlace(const std::string& text) {
    EXPECT_THAT(text, ContainsRegex("^clew: [^ ]*(manifest|start|inputs|"
                                    "schedule)\\.pb: |^clew: [^ ]*/(perf\\.data"
                                    "|core|images/[^ ]*): "));
    EXPECT_THAT(text, ContainsRegex("offset 0x[0-9a-f]+|wanted|the file has|"
                                    "this recording's is|recorded|mapped"));
  }

  static std::unique_ptr<SolvedBundle> bundle_;
  int corrupt_ = 0;  // answered with kExitCorrupt
  int noticed_ = 0;  // in any way
};

std::unique_ptr<SolvedBundle> HostileTest::bundle_;

// Damages one file and puts it back at the end.
class DamagedFile {
 public:
  explicit DamagedFile(fs::path path)
      : path_(std::move(path)), whole_(ReadText(path_)), random_(size()) {}
  ~DamagedFile() { WriteText(path_, whole_); }
  DamagedFile(const DamagedFile&) = delete;
  DamagedFile& operator=(const DamagedFile&) = delete;
  size_t size() const { return whole_.size(); }
  const std::string& whole() const { return whole_; }

  // Each returns what it did.
  std::string Truncate(uint64_t i, uint64_t times) {
    const size_t kept = size() * i / times;
    WriteText(path_, whole_.substr(0, kept));
    return fmt::format("cut to {} of {} bytes", kept, size());
  }
  std::string Flip() { return Flip(random_.Below(8 * size())); }
  // Of one of the first bytes that is not zero: vectors mostly are.
  std::string FlipUsed(size_t first_bytes) {
    for (;;) {
      const uint64_t bit = random_.Below(8 * first_bytes);
      if (whole_[bit / 8] != 0) {
        return Flip(bit);
      }
    }
  }

 private:
  std::string Flip(uint64_t bit) {
    std::string damaged = whole_;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    WriteText(path_, damaged);
    return fmt::format("bit {} flipped", bit);
  }

  fs::path path_;
  std::string whole_;
  Random random_;
};

TEST_F(HostileTest, EveryFileIsATarget) {
  std::set<std::string> files;
  for (const fs::path& file : bundle_->Files()) {
    EXPECT_TRUE(files.insert(file.filename()).second) << file;
    EXPECT_GT(fs::file_size(file), 0u) << file;
  }
  std::set<std::string> targets;
  for (const Target& target : Targets()) {
    targets.insert(target.file);
  }
  EXPECT_EQ(files, targets);
}

class HostileFileTest : public HostileTest,
                        public testing::WithParamInterface<Target> {
 protected:
  const Command& CommandOf(uint64_t i) const {
    return GetParam().commands[i % GetParam().commands.size()];
  }
};

TEST_P(HostileFileTest, EveryTruncationEndsInAnAnswerOrAMessage) {
  DamagedFile file(bundle_->Find(GetParam().file));
  for (uint64_t i = 0; i < Truncations(); ++i) {
    Open(CommandOf(i), file.Truncate(i, Truncations()));
  }
  EXPECT_GT(GetParam().is_image ? noticed_ : corrupt_, 0)
      << "not even an empty file was noticed";
}

TEST_P(HostileFileTest, EveryFlippedBitEndsInAnAnswerOrAMessage) {
  DamagedFile file(bundle_->Find(GetParam().file));
  const uint64_t flips = Flips(GetParam().every_bit_matters ? kFlips : 5);
  for (uint64_t i = 0; i < flips; ++i) {
    Open(CommandOf(i), file.Flip());
  }
  EXPECT_TRUE(noticed_ > 0 || !GetParam().every_bit_matters)
      << "no damage was ever noticed";
}

INSTANTIATE_TEST_SUITE_P(Files, HostileFileTest, testing::ValuesIn(Targets()),
                         [](const auto& target) {
                           return std::string(target.param.name);
                         });

// What hardware's bundles have, too: threads with vectors and rseq areas, and
// what the CPU told.
TEST_F(HostileTest, WhatAStartStateHasBesidesMemoryIsDamaged) {
  if (const std::string why = WhyNoBpf(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  const AnsweringProgram program("endless", "", {"plain"});
  const SolvedBundle attached(program, {"--inputs"});
  ASSERT_TRUE(attached.ok());
  DamagedFile file(attached.Find("start.pb"));
  pb::Start start;
  ASSERT_TRUE(start.ParseFromString(file.whole()));
  ASSERT_TRUE(start.has_told_cpu());
  ASSERT_NE(start.rseq_addr(), 0u);
  ASSERT_GT(start.other_threads_size(), 3);
  start.clear_segments();  // which are the last of the file
  const std::string head = file.whole().substr(0, start.ByteSizeLong());
  ASSERT_TRUE(start.ParseFromString(head));
  ASSERT_EQ(start.segments_size(), 0);
  for (uint64_t i = 0; i < 4 * Flips(8); ++i) {
    Open(attached.path(), kReplay, file.FlipUsed(head.size()));
  }
  EXPECT_GT(noticed_, 0) << "no damage was ever noticed";
}

// Solving may look for as long as it is told to: a tenth of the damage, and an
// empty file and a flipped bit at least.
class HostileSolveTest : public HostileFileTest {
 protected:
  static uint64_t ATenth(uint64_t count) { return (count + 9) / 10; }

  void Solve(const std::string& how) {
    DamagedFile schedule(bundle_->Find("schedule.pb"));  // solve replaces it
    Open({"solve", "--time-limit", "1"}, how);
  }
};

TEST_P(HostileSolveTest, EndsInAnAnswerOrAMessage) {
  DamagedFile file(bundle_->Find(GetParam().file));
  for (uint64_t i = 0; i < ATenth(Truncations()); ++i) {
    Solve(file.Truncate(i, ATenth(Truncations())));
  }
  for (uint64_t i = 0; i < ATenth(Flips(kFlips)); ++i) {
    Solve(file.Flip());
  }
  EXPECT_GT(noticed_, 0) << "no damage was ever noticed";
}

INSTANTIATE_TEST_SUITE_P(Files, HostileSolveTest,
                         testing::ValuesIn(Targets().begin(),
                                           Targets().begin() + 4),
                         [](const auto& target) {
                           return std::string(target.param.name);
                         });

}  // namespace
}  // namespace clew::e2e
