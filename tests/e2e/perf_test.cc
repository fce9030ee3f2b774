// Goal: `perf script --itrace=b` reads every recorded perf.data without an
// error, and finds the branches that our decoder finds, thread by thread.
// Method: failing runs of the small programs, and a run of pbzip2; Debian's
// perf (linux-perf) is the oracle, and without it the test is skipped.
#include <gtest/gtest.h>

#include <algorithm>

#include "bundle/bundle.h"
#include "common/os/child_process.h"
#include "common/result.h"
#include "decoder/bundle_trace.h"
#include "decoder/streams.h"
#include "tests/decoder/perf_script.h"
#include "tests/e2e/clew_command.h"
#include "tests/support/random_lines.h"
#include "tests/support/write_text.h"

namespace clew::e2e {
namespace {

using bundle::Bundle;
using decoder::Branch;
using decoder::Branches;

std::string Describe(const std::vector<Branch>& branches, size_t i) {
  return i < branches.size()
             ? fmt::format("{:#x} => {:#x}", branches[i].from, branches[i].to)
             : "none";
}

void ExpectSame(Branches perf, Branches ours) {
  decoder::ForgetOpenEnds(perf, ours);
  EXPECT_EQ(perf.size(), ours.size()) << "threads";
  for (const auto& [tid, theirs] : perf) {
    const auto found = ours.find(tid);
    ASSERT_NE(found, ours.end()) << "thread " << tid.as_int();
    const auto [a, b] =
        std::mismatch(theirs.begin(), theirs.end(), found->second.begin(),
                      found->second.end());
    const auto i = static_cast<size_t>(a - theirs.begin());
    EXPECT_TRUE(a == theirs.end() && b == found->second.end())
        << "thread " << tid.as_int() << ", branch " << i << " of "
        << theirs.size() << ": perf has " << Describe(theirs, i) << ", we have "
        << Describe(found->second, i) << " of " << found->second.size();
  }
}

class PerfTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (e2e::Run({"perf", "--version"}).exit_status != 0) {
      GTEST_SKIP() << "no perf (Debian package linux-perf)";
    }
  }
  void ExpectPerfAgrees(const std::string& bundle_path) {
    auto bundle = Bundle::Open(bundle_path);
    ASSERT_TRUE(bundle.has_value()) << bundle.error().message;
    auto trace = decoder::ReadTrace(*bundle);
    ASSERT_TRUE(trace.has_value()) << trace.error().message;
    auto streams = decoder::TraceStreams::Create(**trace, {});
    ASSERT_TRUE(streams.has_value()) << streams.error().message;
    const auto ours = decoder::BranchesOfStreams(**streams);
    ASSERT_TRUE(ours.has_value()) << ours.error().message;
    EXPECT_EQ((*streams)->stats().gaps, 0u);
    const auto perf = decoder::BranchesOfPerf(bundle_path + "/perf.data");
    ASSERT_TRUE(perf.has_value()) << perf.error().message;
    ExpectSame(*perf, *ours);
  }

  const Scratch scratch_;
};

TEST_P(PerfTest, FindsOurBranchesInAFailingRun) {
  const std::string bundle = scratch_.Path("fail.clew");
  const ProgramOutput recorded =
      Clew({"record", "--until-fail", "--timeout", "100", "-o", bundle, "--",
            Tracee(GetParam())});
  ASSERT_EQ(recorded.exit_status, kExitFinding) << recorded.text;
  ExpectPerfAgrees(bundle);
}

INSTANTIATE_TEST_SUITE_P(Programs, PerfTest,
                         testing::Values("bank", "deadlock"),
                         [](const auto& parameter) { return parameter.param; });

// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, PerfTest,
                         testing::Values("racey", "bbuf", "sbuf", "pfscan",
                                         "order", "uaf"),
                         [](const auto& parameter) { return parameter.param; });

class MorePerfTest : public PerfTest {};

TEST_F(MorePerfTest, FindsOurBranchesInPbzip2) {
  const std::string program = FindProgram("pbzip2").value_or("");
  if (program.empty()) {
    GTEST_SKIP() << "no pbzip2";
  }
  test::WriteText(scratch_.Path("input"), test::RandomLines(20'000));
  const std::string bundle = scratch_.Path("run.clew");
  const ProgramOutput recorded =
      Clew({"record", "-o", bundle, "--", program, "-p4", "-b1", "-1", "-k",
            scratch_.Path("input")});
  ASSERT_EQ(recorded.exit_status, kExitOk) << recorded.text;
  ExpectPerfAgrees(bundle);
}

}  // namespace
}  // namespace clew::e2e
