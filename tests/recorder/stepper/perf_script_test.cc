// Goal: `perf script` decodes the perf.data that we write without an error, and
// the branches it reports are those that were executed, thread by thread.
// Method: stepped programs, with threads switched on one and two cores. Oracle:
// Debian's perf (linux-perf) against the stepper; skipped where there is none.

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "recorder/stepper/stepped_pt.h"
#include "recorder/stepper/stepper.h"

namespace clew::recorder {
namespace {

using bundle::PerfDataConfig;

using Branch = std::pair<uint64_t, uint64_t>;  // from, to; 0: outside
using Branches = std::map<int32_t, std::vector<Branch>>;

// Passes everything on and keeps the branches as perf tells them.
class BranchLog final : public StepObserver {
 public:
  explicit BranchLog(StepObserver& next) : next_(next) {}
  const Branches& branches() const { return branches_; }

  void OnThread(Tid thread, Tid parent) override {
    next_.OnThread(thread, parent);
  }
  void OnSwitchIn(Tid thread) override {
    thread_ = thread;
    next_.OnSwitchIn(thread);
  }
  void OnInsn(const SteppedInsn& insn) override {
    switch (insn.branch_class) {
      case x86::BranchClass::kNone:
      case x86::BranchClass::kRepString:
        break;
      case x86::BranchClass::kConditional:
        if (insn.next_ip != insn.fall_through) {
          Add(insn.ip, insn.next_ip);
        }
        break;
      default:
        Add(insn.ip, insn.next_ip);
        break;
    }
    next_.OnInsn(insn);
  }
  void OnFarTransfer(const SteppedInsn& insn) override {
    Add(insn.ip, TraceeAddr(0));
    next_.OnFarTransfer(insn);
  }
  void OnInterrupt(TraceeAddr ip) override {
    Add(ip, TraceeAddr(0));
    next_.OnInterrupt(ip);
  }
  void OnKernelReturn(TraceeAddr ip) override {
    Add(TraceeAddr(0), ip);
    next_.OnKernelReturn(ip);
  }
  void OnSwitchOut(bool preempted) override { next_.OnSwitchOut(preempted); }
  void OnExit(Tid thread) override { next_.OnExit(thread); }
  void OnMaps(const std::string& maps) override { next_.OnMaps(maps); }

 private:
  void Add(TraceeAddr from, TraceeAddr to) {
    branches_[thread_.as_int()].emplace_back(from.as_int(), to.as_int());
  }
  StepObserver& next_;
  Tid thread_;
  Branches branches_;
};

std::string OutputOf(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  std::string output;
  char buffer[4096];
  for (size_t got; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    output.append(buffer, got);
  }
  EXPECT_EQ(pclose(pipe), 0) << command << "\n" << output.substr(0, 2000);
  return output;
}

// Lines of "tid from => to". What is no such line is kept in `others`.
Branches ParseBranches(const std::string& output,
                       std::vector<std::string>& others) {
  Branches branches;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    int tid = 0;
    unsigned long from = 0;
    unsigned long to = 0;
    if (std::sscanf(line.c_str(), "%d %lx => %lx", &tid, &from, &to) == 3) {
      branches[tid].emplace_back(from, to);
    } else {
      others.push_back(line);
    }
  }
  return branches;
}

class PerfScriptTest : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("perf --version > /dev/null 2>&1") != 0) {
      GTEST_SKIP() << "no perf (Debian package linux-perf)";
    }
    folder_ = testing::TempDir() + "clew_perf_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void ExpectPerfAgrees(const std::string& program, uint32_t core_count,
                        uint32_t quantum_insns, const EncoderConfig& encoder) {
    SCOPED_TRACE(testing::Message() << program << ", cores " << core_count
                                    << ", quantum " << quantum_insns);
    const std::string path = folder_ + "/perf.data";
    PerfDataConfig config;
    config.core_count = core_count;
    config.command = {program};
    auto pt = SteppedPt::Create(PosixFileSystem(), path, encoder, config);
    ASSERT_TRUE(pt.has_value());
    BranchLog log(**pt);
    StepperOptions options;
    options.command = {
        fmt::format("{}/tests/recorder/programs_static/clew_static_{}",
                    std::getenv("CLEW_BINARY_DIR"), program)};
    options.quantum_insns = quantum_insns;
    options.host_cpu = sched_getcpu();  // one that may be used
    const auto run = RunStepped(options, log);
    ASSERT_TRUE(run.has_value()) << run.error().message;
    ASSERT_TRUE((*pt)->Finish());
    ExpectSame(path, log.branches());
  }

 private:
  // "i" stands for all kinds of errors beside branches: "e" in --itrace.
  void ExpectSame(const std::string& path, const Branches& truth) {
    std::vector<std::string> others;
    const Branches branches = ParseBranches(
        OutputOf(fmt::format("perf script -i {} --itrace=be -F tid,ip,addr "
                             "2>&1",
                             path)),
        others);
    EXPECT_EQ(others, std::vector<std::string>());
    ASSERT_EQ(branches.size(), truth.size());
    for (const auto& [tid, expected] : truth) {
      SCOPED_TRACE(testing::Message() << "thread " << tid);
      ASSERT_TRUE(branches.contains(tid));
      const std::vector<Branch>& got = branches.at(tid);
      EXPECT_EQ(got.size(), expected.size());
      for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
        ASSERT_EQ(got[i], expected[i]) << "branch " << i;
      }
    }
  }

  std::string folder_;
};

TEST_F(PerfScriptTest, OneThread) { ExpectPerfAgrees("branches", 1, 500, {}); }

TEST_F(PerfScriptTest, ThreadsThatShareACore) {
  ExpectPerfAgrees("threads", 1, 100, {});
}

TEST_F(PerfScriptTest, ThreadsOnTwoCores) {
  for (const uint32_t quantum_insns : {1u, 3u, 30u}) {
    ExpectPerfAgrees("threads", 2, quantum_insns, {});
  }
}

TEST_F(PerfScriptTest, OtherConfigurations) {
  EncoderConfig encoder;
  encoder.cyc = true;
  encoder.long_tnt = false;
  encoder.psb_period_bytes = 256;
  ExpectPerfAgrees("threads", 2, 300, encoder);
  encoder.cyc = false;
  encoder.return_compression = false;
  encoder.mtc_period = 3;
  ExpectPerfAgrees("branches", 1, 300, encoder);
}

}  // namespace
}  // namespace clew::recorder
