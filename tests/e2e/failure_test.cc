// Goal: recordings of one bug have one signature, of different bugs different
// ones; the score of a bundle says what is missing and never grows when more
// is; a bundle without its secrets is solved and replayed as before. Method:
// the built program on recordings of the small programs. The score: all subsets
// of a bundle's files, and damaged files, seed printed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <random>
#include <set>

#include "common/os/file.h"
#include "common/result.h"
#include "daemon/redact/redact.h"
#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;

// What a command with --json printed; it has to end with `wanted`.
nlohmann::json Report(const ProgramOutput& output, int wanted) {
  EXPECT_EQ(output.exit_status, wanted) << output.text;
  return nlohmann::json::parse(output.text, nullptr,
                               /*allow_exceptions=*/false);
}

nlohmann::json Report(std::vector<std::string> arguments, int wanted) {
  return Report(Clew(std::move(arguments)), wanted);
}

nlohmann::json Backtrace(const std::string& bundle) {
  const auto report =
      Report(ClewAtLeisure("backtrace", {"--json", bundle}), kExitOk);
  EXPECT_TRUE(report.is_object());
  return report.is_object() ? report : nlohmann::json::object();
}

// As `strip` leaves it: no symbol, another build-id's program all the same.
std::string Stripped(const Scratch& scratch, const std::string& program,
                     const std::string& folder) {
  std::filesystem::create_directory(scratch.Path(folder));
  const std::string path = scratch.Path(
      folder + "/" + std::filesystem::path(program).filename().string());
  const ProgramOutput output = Run({"/usr/bin/strip", "-o", path, program});
  EXPECT_EQ(output.exit_status, 0) << output.text;
  return path;
}

// The same program with one constant more, with symbols and without.
TEST(FailureTest, TheNextBuildHasTheSameSignatureAndAnotherVersion) {
  const Scratch scratch;
  const std::string programs[][2] = {
      {Tracee("bank"), Tracee("next/bank")},
      {Stripped(scratch, Tracee("bank"), "old"),
       Stripped(scratch, Tracee("next/bank"), "new")}};
  for (const auto& builds : programs) {
    std::set<std::string> signatures;
    std::set<std::string> versions;
    for (const std::string& program : builds) {
      const std::string bundle =
          scratch.Path(fmt::format("{}.clew", versions.size()));
      std::filesystem::remove_all(bundle);
      const ProgramOutput recorded = Clew({"record", "--until-fail", "--seed",
                                           "1", "-o", bundle, "--", program});
      ASSERT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
      const auto backtrace = Backtrace(bundle);
      EXPECT_EQ(backtrace.value("program", ""), "bank");
      signatures.insert(backtrace.value("signature", ""));
      versions.insert(backtrace.value("version", ""));
    }
    EXPECT_EQ(signatures.size(), 1u) << builds[0];
    EXPECT_EQ(versions.size(), 2u) << builds[0];
  }
}

// The lines of the program that have this text, from 1 on.
std::set<int> LinesWith(const std::string& file, const std::string& text) {
  std::set<int> lines;
  std::ifstream source(file);
  std::string line;
  for (int number = 1; std::getline(source, line); ++number) {
    if (line.find(text) != std::string::npos) {
      lines.insert(number);
    }
  }
  return lines;
}

TEST(FailureTest, AWitnessNamesTheLinesThatRaced) {
  const Scratch scratch;
  const std::string bundle = scratch.Path("bank.clew");
  ASSERT_NO_FATAL_FAILURE(RecordFailure(bundle, "bank", 1));
  const auto solved =
      Report(ClewAtLeisure("solve", {"--json", bundle}), kExitOk);
  ASSERT_FALSE(solved["races"].empty()) << solved.dump();
  const auto& accesses = solved["races"][0]["accesses"];
  ASSERT_EQ(accesses.size(), 3u);
  for (const auto& access : accesses) {
    EXPECT_EQ(access.value("variable", ""), "balance") << access.dump();
    EXPECT_NE(access.value("function", ""), "");
  }
  // A reads, B writes, A writes: what B paid in is lost.
  EXPECT_EQ(accesses[0].value("kind", ""), "read");
  EXPECT_NE(accesses[1].value("kind", ""), "read");
  EXPECT_EQ(accesses[2].value("kind", ""), "write");
  EXPECT_EQ(accesses[0]["thread"], accesses[2]["thread"]);
  EXPECT_NE(accesses[0]["thread"], accesses[1]["thread"]);
  EXPECT_EQ(accesses[2].value("value", 0), accesses[0].value("value", 0) + 10);
  const std::string file = accesses[2].value("file", "");
  EXPECT_THAT(LinesWith(file, "RACY-WRITE: balance"),
              Contains(accesses[2].value("line", 0)));
  EXPECT_THAT(LinesWith(file, "long seen ="),
              Contains(accesses[0].value("line", 0)));
}

struct Bugs {
  std::vector<std::string> programs;
  std::vector<int> seeds;
};
void PrintTo(const Bugs& bugs, std::ostream* out) {
  *out << bugs.programs.size() << " programs";
}

class SignatureTest : public testing::TestWithParam<Bugs> {};

TEST_P(SignatureTest, OneBugHasOneSignature) {
  const Scratch scratch;
  std::map<std::string, std::set<std::string>> signatures;
  std::map<std::string, std::string> titles;
  for (const std::string& program : GetParam().programs) {
    for (const int seed : GetParam().seeds) {
      const std::string bundle =
          scratch.Path(fmt::format("{}{}", program, seed));
      ASSERT_NO_FATAL_FAILURE(RecordFailure(bundle, program, seed));
      const auto backtrace = Backtrace(bundle);
      signatures[program].insert(backtrace.value("signature", ""));
      titles[program] = backtrace.value("title", "");
    }
    EXPECT_EQ(signatures[program].size(), 1u) << program;
    EXPECT_EQ(signatures[program].begin()->size(), 64u);
  }
  std::set<std::string> all;
  for (const auto& [program, found] : signatures) {
    all.insert(found.begin(), found.end());
  }
  EXPECT_EQ(all.size(), signatures.size());
  const std::map<std::string, std::string> wanted = {
      {"bank",
       "bank: Assertion `balance == expected' failed (SIGABRT in main)"},
      {"uaf", "uaf: SIGSEGV in Read"},
      {"deadlock", "deadlock: hang in Teller, main"}};
  for (const auto& [program, title] : wanted) {
    EXPECT_TRUE(!titles.contains(program) || titles[program] == title)
        << titles[program];
  }
}

INSTANTIATE_TEST_SUITE_P(Bugs, SignatureTest,
                         testing::Values(Bugs{{"bank", "deadlock"},
                                              {1, 1000}}));
// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, SignatureTest,
                         testing::Values(Bugs{
                             {"bank", "uaf", "racey", "deadlock"},
                             {1, 1000, 77000}}));

TEST(FailureTest, BacktracesAreJsonAndTextOfOneShape) {
  const Scratch scratch;
  const std::string bundle = scratch.Path("b");
  ASSERT_NO_FATAL_FAILURE(RecordFailure(bundle, "uaf", 1));
  const auto whole = Backtrace(bundle);
  const auto& threads = whole["threads"];
  ASSERT_GE(threads.size(), 2u);
  EXPECT_TRUE(threads[0].value("failed", false));
  const auto& first = threads[0]["frames"][0];
  EXPECT_EQ(first.value("function", ""), "Read");
  EXPECT_EQ(first.value("module", ""), "uaf");
  EXPECT_EQ(first.value("build_id", "").size(), 40u);
  EXPECT_GT(first.value("offset", 0), 0);
  EXPECT_GT(first.value("line", 0), 0);
  EXPECT_THAT(first.value("file", ""), HasSubstr("uaf.c"));

  const std::string other = std::to_string(threads[1].value("thread", 0));
  const ProgramOutput one =
      ClewAtLeisure("backtrace", {"--thread", other, bundle});
  EXPECT_EQ(one.exit_status, kExitOk) << one.text;
  EXPECT_THAT(one.text, HasSubstr("Thread " + other + ":"));
  EXPECT_THAT(one.text, HasSubstr(whole.value("signature", "?")));
  EXPECT_EQ(one.text.find("(failed)"), std::string::npos);
  EXPECT_EQ(ClewAtLeisure("backtrace", {"--thread", "1", bundle}).exit_status,
            kExitUsage);

  // Without a dump: the failing instruction, its function by its image.
  std::filesystem::remove(bundle + "/core");
  const auto without = Backtrace(bundle);
  EXPECT_EQ(without.value("title", ""), "uaf: SIGSEGV in Read");
  EXPECT_EQ(without["threads"].size(), 1u);
}

// Copies of a bundle with some of its files.
class SufficiencyTest : public testing::Test {
 protected:
  void SetUp() override {
    bundle_ = scratch_.Path("whole");
    ASSERT_NO_FATAL_FAILURE(RecordFailure(bundle_, "bank", 1));
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(bundle_)) {
      const std::string name =
          entry.path().lexically_relative(bundle_).string();
      if (entry.is_regular_file() && name != "manifest.pb") {
        names_.push_back(name);
      }
    }
    ASSERT_EQ(names_.size(), 7u);  // perf.data, start, inputs, core, 3 images
    // A folder has them in any order, and images are in folders of their ids.
    std::ranges::sort(names_, {}, [](const std::string& name) {
      return std::filesystem::path(name).filename();
    });
    const auto trace = std::ranges::find(names_, "perf.data");
    ASSERT_NE(trace, names_.end());
    trace_ = 1u << (trace - names_.begin());
  }
  // A copy with the files whose bits are set.
  std::string With(unsigned files) const {
    const std::string copy = scratch_.Path("copy");
    std::filesystem::remove_all(copy);
    std::filesystem::copy(bundle_, copy,
                          std::filesystem::copy_options::recursive);
    for (size_t i = 0; i < names_.size(); ++i) {
      if ((files >> i & 1) == 0) {
        std::filesystem::remove(copy + "/" + names_[i]);
      }
    }
    return copy;
  }
  static int Score(const std::string& bundle) {
    const ProgramOutput output = Clew({"check", "--json", bundle});
    const auto check = nlohmann::json::parse(output.text, nullptr, false);
    EXPECT_TRUE(check.is_object()) << output.text;
    return check.is_object() ? check.value("score", -1) : -1;
  }

  Scratch scratch_;
  std::string bundle_;
  std::vector<std::string> names_;
  unsigned trace_ = 0;  // the bit of perf.data
};

// How many files are removed at most.
class RemovedTest : public SufficiencyTest,
                    public testing::WithParamInterface<int> {};

TEST_P(RemovedTest, NeverGrowsWhenAFileIsRemoved) {
  const unsigned all = (1u << names_.size()) - 1;
  std::map<unsigned, int> scores;
  std::set<int> distinct;
  for (unsigned files = 0; files <= all; ++files) {
    if (std::popcount(all & ~files) <= GetParam()) {
      scores[files] = Score(With(files));
      distinct.insert(scores[files]);
    }
  }
  EXPECT_EQ(scores[all], 100);
  EXPECT_GT(distinct.size(), 8u);
  for (const auto& [files, score] : scores) {
    for (size_t i = 0; i < names_.size(); ++i) {
      const auto less = scores.find(files & ~(1u << i));
      if (less == scores.end()) {
        continue;
      }
      EXPECT_LE(less->second, score) << files << " without " << names_[i];
      // Each file is worth something in the whole bundle.
      if (files == all) {
        EXPECT_LT(less->second, 100) << names_[i];
      }
    }
    if ((files & trace_) == 0) {
      EXPECT_EQ(score, 0) << files;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Two, RemovedTest, testing::Values(2));
// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, RemovedTest, testing::Values(7));

struct Damage {
  int runs;
  int lower_min;  // scores that the damage has to lower; a few may show nothing
};
void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.runs; }

class DamagedTest : public SufficiencyTest,
                    public testing::WithParamInterface<Damage> {};

TEST_P(DamagedTest, NeverGrowsWhenAFileIsDamaged) {
  std::mt19937 random(20240608);
  SCOPED_TRACE("seed 20240608");
  int lower = 0;
  for (int run = 0; run < GetParam().runs; ++run) {
    // Some files are gone already; without the trace there is no score.
    const auto files = static_cast<unsigned>(random()) | trace_;
    const std::string copy = With(files);
    const int before = Score(copy);
    size_t damaged = random() % names_.size();
    while ((files >> damaged & 1) == 0) {
      damaged = random() % names_.size();
    }
    const std::string& name = names_[damaged];
    const std::string path = copy + "/" + name;
    const auto size = std::filesystem::file_size(path);
    if (run % 2 == 0) {
      std::filesystem::resize_file(path, random() % size);
    } else {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(random() % size));
      file << std::string(16, '\0');
    }
    const int after = Score(copy);
    EXPECT_LE(after, before) << run << ": " << name;
    lower += after < before ? 1 : 0;
  }
  EXPECT_GE(lower, GetParam().lower_min);
}

INSTANTIATE_TEST_SUITE_P(Few, DamagedTest, testing::Values(Damage{10, 0}));
// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, DamagedTest, testing::Values(Damage{40, 6}));

TEST_F(SufficiencyTest, ExitCodesSayWhatWasFoundAndTheManifestKeepsIt) {
  EXPECT_EQ(Clew({"check", "--write", bundle_}).exit_status, kExitOk);
  auto info = Report({"info", "--json", "--no-backtraces", bundle_}, kExitOk);
  EXPECT_EQ(info["sufficiency"].value("score", 0), 100);
  EXPECT_TRUE(info["trigger"].is_null());

  std::filesystem::remove(bundle_ + "/start.pb");
  const auto check =
      Report({"check", "--write", "--json", bundle_}, kExitFinding);
  EXPECT_FALSE(check.value("solvable", true));
  EXPECT_THAT(check["reasons"].dump(), HasSubstr("no start state"));
  info = Report({"info", "--json", "--no-backtraces", bundle_}, kExitOk);
  EXPECT_EQ(info["sufficiency"].value("score", 0), 80);

  std::filesystem::resize_file(bundle_ + "/core", 100);
  EXPECT_EQ(Clew({"check", bundle_}).exit_status, kExitCorrupt);
  // A schedule names the manifest that it belongs to.
  std::ofstream(bundle_ + "/schedule.pb") << "";
  const ProgramOutput refused = Clew({"check", "--write", bundle_});
  EXPECT_EQ(refused.exit_status, kExitUsage);
  EXPECT_THAT(refused.text, HasSubstr("remove schedule.pb first"));
}

// A record of three unknown inputs of `thread`, as inputs.pb has it.
std::string UnknownInputs(int thread) {
  std::string message = "\x08";  // Input.thread
  for (; thread >= 0x80; thread >>= 7) {
    message += static_cast<char>((thread & 0x7f) | 0x80);
  }
  message += static_cast<char>(thread);
  message += "\x2a\x02\x08\x03";  // Input.unknown, 2 bytes: count = 3
  return static_cast<char>(message.size()) + message;
}

TEST_F(SufficiencyTest, CountsInputsThatAreNotKnown) {
  const int thread = Backtrace(bundle_)["threads"][0].value("thread", 0);
  std::ofstream(bundle_ + "/inputs.pb", std::ios::app | std::ios::binary)
      << UnknownInputs(thread);
  const auto check = Report({"check", "--json", bundle_}, kExitFinding);
  EXPECT_EQ(check.value("score", 0), 90);
  EXPECT_THAT(check["reasons"].dump(), HasSubstr("3 inputs are not known"));
}

constexpr const char* kToken = "tok-5e3a91bc77d0";
constexpr const char* kPassword = "correct-horse-battery";

class SecretTest : public testing::Test {
 protected:
  void SetUp() override {
    bundle_ = scratch_.Path("b");
    setenv("CLEW_TEST_TOKEN", kToken, 1);
    ASSERT_NO_FATAL_FAILURE(
        RecordFailure(bundle_, "bank", 1, {"40", "--password", kPassword}));
    unsetenv("CLEW_TEST_TOKEN");
  }
  // Files that have a secret.
  std::vector<std::string> Leaks() const {
    std::vector<std::string> found;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(bundle_)) {
      if (!entry.is_regular_file()) {
        continue;
      }
      const auto bytes = ReadWholeFile(entry.path());
      const std::string text(reinterpret_cast<const char*>(bytes->data()),
                             bytes->size());
      if (text.find(kToken) != std::string::npos ||
          text.find(kPassword) != std::string::npos) {
        found.push_back(entry.path().filename());
      }
    }
    return found;
  }
  // As clewd does.
  void Redact(const std::string& text) const {
    const std::string rules = bundle_ + ".rules";
    ASSERT_TRUE(WriteWholeFile(PosixFileSystem(), rules,
                               std::as_bytes(std::span(text))));
    const auto redacted = daemon::RedactBundle(bundle_, rules);
    ASSERT_TRUE(redacted) << redacted.error().message;
  }
  Scratch scratch_;
  std::string bundle_;
};

TEST_F(SecretTest, AreGoneAndTheBundleIsSolvedAndReplayed) {
  EXPECT_THAT(Leaks(), Contains("core"));
  EXPECT_THAT(Leaks(), Contains("start.pb"));
  auto before = Backtrace(bundle_);
  EXPECT_THAT(before.value("message", ""), HasSubstr("Assertion"));
  Redact(
      "environment drop *TOKEN*\narguments drop-after --password\n"
      "core keep [stack],file\ncore drop all\n");
  EXPECT_THAT(Leaks(), testing::IsEmpty());
  // What the program said lay in memory that is dropped. The assertion's text
  // is the program's, and stays; nothing else changes.
  auto after = Backtrace(bundle_);
  EXPECT_THAT(after.value("message", ""),
              AllOf(HasSubstr("bank.c:"), EndsWith("' failed")));
  after["message"] = before["message"];
  EXPECT_EQ(after, before);
  EXPECT_THAT(before.value("title", ""), HasSubstr("bank: Assertion `"));

  const auto check = Report({"check", "--json", bundle_}, kExitOk);
  EXPECT_EQ(check.value("score", 0), 100);
  EXPECT_THAT(check["reasons"].dump(),
              HasSubstr("redacted: environment: values of"));
  EXPECT_THAT(check["reasons"].dump(), HasSubstr("CLEW_TEST_TOKEN"));

  const ProgramOutput solved = ClewAtLeisure("solve", {bundle_});
  ASSERT_EQ(solved.exit_status, kExitOk) << solved.text;
  const ProgramOutput replayed = Clew({"replay", "--check", "3", bundle_});
  EXPECT_EQ(replayed.exit_status, kExitOk) << replayed.text;
}

TEST_F(SecretTest, WithoutStartOrInputsTheBundleIsNotSolvedAndSaysWhy) {
  Redact("start drop\ninputs drop");
  const auto check = Report({"check", "--json", bundle_}, kExitFinding);
  EXPECT_THAT(check["reasons"].dump(), HasSubstr("redacted: start state"));
  EXPECT_EQ(Clew({"solve", bundle_}).exit_status, kExitEnvironment);
  EXPECT_EQ(Clew({"backtrace", bundle_}).exit_status, kExitOk);
}

}  // namespace
}  // namespace clew::e2e
