// Goal: errors become one line and the exit code of their cause; quoting
// survives a shell; the host's checks tell a host that lacks something from one
// that does not, with a remedy for each lack.
// Method: every error kind; a real shell as the oracle of quoting; hosts made
// of files in a temporary directory.
#include "cli/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/host/host_checks.h"
#include "cli/run_program.h"
#include "common/text/shell_quote.h"

namespace clew::cli {
namespace {

TEST(ReportTest, AnErrorIsOneLineAndTheExitCodeOfItsCause) {
  testing::internal::CaptureStderr();
  const int code = ReportError(CorruptInput("b1.clew: {}", "short").error());
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "clew: b1.clew: short\n");
  EXPECT_EQ(code, kExitCorrupt);
  EXPECT_EQ(ReportStatus({}), kExitOk);
}

TEST(ReportTest, AShellGivesQuotedWordsBackUnchanged) {
  for (const std::string word :
       {"", "plain", "two words", "it's", "$HOME", "a\"b", "*", "-x=1",
        "new\n.", "\\", "!", "~", "#", "caf\xc3\xa9"}) {
    const auto output =
        RunProgram({"sh", "-c", "printf %s. " + ShellQuote(word)});
    ASSERT_TRUE(output.has_value());
    EXPECT_EQ(output->text, word + ".");
  }
}

TEST(ReportTest, PlainWordsStayReadable) {
  const std::vector<std::string> words = {"./server", "--port=80", "a b"};
  EXPECT_EQ(ShellQuote(words), "./server --port=80 'a b'");
}

TEST(RunProgramTest, TellsOutputAndStatus) {
  EXPECT_EQ(RunProgram({"sh", "-c", "echo x; exit 7"})->exit_status, 7);
  EXPECT_EQ(RunProgram({"sh", "-c", "echo x; exit 7"})->text, "x\n");
  EXPECT_EQ(RunProgram({"sh", "-c", "kill -9 $$"})->exit_status, 137);
  EXPECT_EQ(RunProgram({"sh", "-c", "cat; echo trouble >&2"})->text, "");
  const auto absent = RunProgram({"no-such-program-here"});
  ASSERT_FALSE(absent.has_value());
  EXPECT_EQ(absent.error().message,
            "cannot run \"no-such-program-here\": No such file or directory");
}

TEST(RunProgramTest, KeepsABoundedAmountOfOutput) {
  const auto output = RunProgram({"head", "-c", "1000000", "/dev/zero"});
  ASSERT_TRUE(output.has_value());
  EXPECT_EQ(output->text.size(), kCapturedBytesMax);
  EXPECT_EQ(output->exit_status, 0);
}

class HostTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "clew-host-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = root_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }

  HostCheck Check(const std::string& name) const {
    const auto checks = CheckHost({.proc = root_ + "/p", .sys = root_ + "/s"});
    const auto found = std::ranges::find(checks, name, &HostCheck::name);
    return found == checks.end() ? HostCheck{.name = "not checked"} : *found;
  }

  std::string root_;
};

TEST_F(HostTest, IntelPtIsPresentIfItsEventSourceIs) {
  EXPECT_FALSE(Check("intel_pt").ok);
  Write("s/bus/event_source/devices/intel_pt/type", "8");
  EXPECT_TRUE(Check("intel_pt").ok);
}

TEST_F(HostTest, PerfNeedsALowParanoiaOrACapability) {
  const std::string paranoid = "p/sys/kernel/perf_event_paranoid";
  EXPECT_FALSE(Check("perf_event").ok) << "no perf events in this kernel";
  Write(paranoid, "2");
  EXPECT_FALSE(Check("perf_event").ok);
  Write("p/self/status", "CapEff:\t0000004000000000");  // CAP_PERFMON alone
  EXPECT_TRUE(Check("perf_event").ok);
  Write("p/self/status", "CapEff:\t0000002000000000");  // its neighbour
  EXPECT_FALSE(Check("perf_event").ok);
  Write(paranoid, "1");
  EXPECT_FALSE(Check("perf_event").ok);
  EXPECT_NE(Check("perf_event")
                .found.find("own threads yes, whole CPUs and "
                            "cgroups no"),
            std::string::npos);
  Write(paranoid, "3");
  EXPECT_NE(Check("perf_event").found.find("own threads no"),
            std::string::npos);
  Write("p/self/status", "CapEff:\t0000004000000000");  // not on Debian
  EXPECT_FALSE(Check("perf_event").ok);
  Write("p/self/status", "CapEff:\t0000000000200000");  // CAP_SYS_ADMIN
  EXPECT_TRUE(Check("perf_event").ok);
  Write("p/self/status", "CapEff:\t0000000000000000");
  Write(paranoid, "0");
  EXPECT_TRUE(Check("perf_event").ok);
}

TEST_F(HostTest, PtraceIsRefusedByYamaThreeOnly) {
  EXPECT_TRUE(Check("ptrace").ok);
  Write("p/sys/kernel/yama/ptrace_scope", "3");
  EXPECT_FALSE(Check("ptrace").ok);
  Write("p/sys/kernel/yama/ptrace_scope", "1");
  EXPECT_TRUE(Check("ptrace").ok);
}

TEST_F(HostTest, EveryLackHasARemedy) {
  for (const HostCheck& check :
       CheckHost({.proc = root_ + "/p", .sys = root_ + "/s"})) {
    EXPECT_TRUE(check.ok || !check.remedy.empty()) << check.name;
    EXPECT_FALSE(check.found.empty()) << check.name;
  }
}

TEST_F(HostTest, OnlyRequiredLacksForbidSoftwareRecording) {
  EXPECT_TRUE(CanRecordInSoftware({{.name = "a", .ok = true, .required = true},
                                   {.name = "b", .ok = false}}));
  EXPECT_FALSE(CanRecordInSoftware({{.name = "a", .required = true}}));
}

TEST_F(HostTest, ThePluginIsWhereTheRecorderLooksForIt) {
  setenv("CLEW_PLUGIN", (root_ + "/plugin.so").c_str(), 1);
  EXPECT_FALSE(Check("plugin").ok);
  EXPECT_EQ(Check("plugin").found, "not in " + root_ + "/plugin.so");
  Write("plugin.so", "");
  EXPECT_TRUE(Check("plugin").ok);
  EXPECT_EQ(Check("plugin").found, root_ + "/plugin.so");
  unsetenv("CLEW_PLUGIN");
}

}  // namespace
}  // namespace clew::cli
