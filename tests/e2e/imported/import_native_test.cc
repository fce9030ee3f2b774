// Goal: a run on this host's CPU whose trace comes as a perf.data, with core
// dump, start state and inputs beside it, is decoded, solved and replayed to
// what the bundle itself is; and perf finds the same instructions in it, one
// after another.
// Method: the built program on programs that lose a race and die of it, by an
// assertion or a bad pointer. Oracles: the bundle that `clew record` wrote, and
// for decoding Debian's perf (linux-perf), without which that part is skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "bundle/bundle.h"
#include "common/result.h"
#include "decoder/bundle_trace.h"
#include "decoder/streams.h"
#include "tests/decoder/perf_script.h"
#include "tests/e2e/clew_command.h"
#include "tests/e2e/imported/import_command.h"

namespace clew::e2e {
namespace {

using testing::HasSubstr;

Result<decoder::Ips> Decoded(const std::string& path) {
  CLEW_ASSIGN_OR_RETURN(bundle, bundle::Bundle::Open(path));
  CLEW_ASSIGN_OR_RETURN(trace, decoder::ReadTrace(bundle));
  CLEW_ASSIGN_OR_RETURN(streams, decoder::TraceStreams::Create(*trace, {}));
  return decoder::IpsOfStreams(*streams);
}

void ExpectSame(const decoder::Ips& of_perf, const decoder::Ips& ours) {
  ASSERT_EQ(of_perf.size(), ours.size()) << "threads";
  for (const auto& [thread, theirs] : of_perf) {
    ASSERT_TRUE(ours.contains(thread)) << thread.as_int();
    const auto& mine = ours.at(thread);
    const auto differs = std::ranges::mismatch(theirs, mine);
    ASSERT_TRUE(differs.in1 == theirs.end() && differs.in2 == mine.end())
        << "thread " << thread.as_int() << ": they differ from instruction "
        << differs.in1 - theirs.begin() << " on, of " << theirs.size()
        << " that perf finds and " << mine.size() << " of ours";
  }
}

// How a replay ends: "signal 6 (SIGABRT) in thread 9 at 0x7ffff7e5ceec after
// 120728 instructions". (Which of the orders that agree with the evidence was
// found, its memory tells: what was raced for in vain may differ.)
std::string EndOf(const std::string& bundle) {
  const ProgramOutput replayed = Clew({"replay", "--check", "20", bundle});
  EXPECT_EQ(replayed.exit_status, kExitOk) << replayed.text;
  EXPECT_THAT(replayed.text, HasSubstr("20 of 20 replays agree"));
  std::smatch end;
  EXPECT_TRUE(std::regex_search(
      replayed.text, end, std::regex("signal .* after \\d+ instructions")))
      << replayed.text;
  return end.str();
}

class ImportedRunTest : public testing::TestWithParam<const char*> {
 protected:
  Scratch scratch_;
};

TEST_P(ImportedRunTest, IsWhatTheBundleItselfIs) {
  const std::string bundle = scratch_.Path("fail.clew");
  const ProgramOutput recorded =
      Clew({"record", "--source", "step", "--until-fail", "-o", bundle, "--",
            Tracee(GetParam())});
  ASSERT_EQ(recorded.exit_status, kExitFinding) << recorded.text;

  const std::string imported = scratch_.Path("imported.clew");
  const nlohmann::json report =
      Import(bundle + "/perf.data", imported,
             {"--core", bundle + "/core", "--start", bundle + "/start.pb",
              "--inputs", bundle + "/inputs.pb"});
  EXPECT_TRUE(report["warnings"].empty()) << report["warnings"];
  EXPECT_EQ(report["images_missing"], 0) << report;
  EXPECT_EQ(report["start_threads"], 1);
  EXPECT_GT(report["inputs"]["calls"], 10);

  const auto ours = Decoded(bundle);
  ASSERT_TRUE(ours) << ours.error().message;
  const auto of_import = Decoded(imported);
  ASSERT_TRUE(of_import) << of_import.error().message;
  EXPECT_TRUE(*ours == *of_import);

  for (const std::string& path : {bundle, imported}) {
    const ProgramOutput solved = ClewAtLeisure("solve", {path});
    EXPECT_EQ(solved.exit_status, kExitOk) << solved.text;
    EXPECT_THAT(solved.text, HasSubstr("witness found"));
  }
  EXPECT_EQ(EndOf(bundle), EndOf(imported));
}

TEST_P(ImportedRunTest, HasTheInstructionsThatPerfFinds) {
  const std::string bundle = scratch_.Path("run.clew");
  const ProgramOutput recorded = Clew(
      {"record", "--source", "step", "-o", bundle, "--", Tracee(GetParam())});
  ASSERT_THAT(recorded.exit_status, testing::AnyOf(kExitOk, kExitFinding))
      << recorded.text;
  const auto ours = Decoded(bundle);
  ASSERT_TRUE(ours) << ours.error().message;
  const auto of_perf = decoder::IpsOfPerf(bundle + "/perf.data");
  if (!of_perf && of_perf.error().code == ErrorCode::kUnsupported) {
    GTEST_SKIP() << of_perf.error().message;
  }
  ASSERT_TRUE(of_perf) << of_perf.error().message;
  ExpectSame(*of_perf, *ours);
}

constexpr auto kName = [](const auto& test) {
  std::string name = test.param;
  std::ranges::replace(name, '/', '_');
  return name;
};

INSTANTIATE_TEST_SUITE_P(Programs, ImportedRunTest, testing::Values("bbuf"),
                         kName);

// In tools/test --all: each takes many seconds.
INSTANTIATE_TEST_SUITE_P(More, ImportedRunTest,
                         testing::Values("bank", "phases", "order", "uaf",
                                         "vector_total", "races/lost_update",
                                         "races/use_after_free"),
                         kName);

// start.pb and inputs.pb say nothing of each other's run.
TEST(ImportedPartsTest, OneWithoutTheOtherIsRefusedAndSoIsWhatIsNone) {
  const Scratch scratch;
  const std::string bundle = scratch.Path("run.clew");
  const ProgramOutput recorded = Clew({"record", "--source", "step", "-o",
                                       bundle, "--", Tracee("static_strings")});
  ASSERT_EQ(recorded.exit_status, kExitOk) << recorded.text;
  const std::string trace = bundle + "/perf.data";
  const std::string start = bundle + "/start.pb";
  const std::string inputs = bundle + "/inputs.pb";
  const auto refused = [&](int status, const std::string& text,
                           const std::vector<std::string>& more) {
    const std::string output = scratch.Path("imported.clew");
    std::vector<std::string> command = {"import", trace, "-o", output};
    command.insert(command.end(), more.begin(), more.end());
    const ProgramOutput import = Clew(command);
    EXPECT_EQ(import.exit_status, status) << import.text;
    EXPECT_THAT(import.text, HasSubstr(text));
    EXPECT_THAT(Clew({"info", output}).text, HasSubstr("is not there"));
  };
  refused(kExitUsage, "wanted both", {"--start", start});
  refused(kExitUsage, "wanted both", {"--inputs", inputs});
  refused(kExitCorrupt, inputs, {"--start", inputs, "--inputs", inputs});
  refused(kExitCorrupt, start, {"--start", start, "--inputs", start});
  refused(kExitEnvironment, "none", {"--start", start, "--inputs", "none"});
}

}  // namespace
}  // namespace clew::e2e
