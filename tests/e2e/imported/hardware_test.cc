// Goal: `clew record --source perf --sideband-only` makes whole bundles of a
// launched program, a process, a cgroup and the host, in which each thread has
// the switches that the kernel and perf tell of; what cannot be recorded is
// refused with a message that says what to do, and leaves nothing behind.
// Method: the built program on the kernel that runs us. Oracles: what a tracee
// reports of itself, perf script. PT itself is in tests/recorder/
// perf_recording_test.cc. Skipped, with the reason, where events are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "tests/e2e/imported/hardware_fixture.h"
#include "tests/support/wait_until.h"

namespace clew::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

std::string PerfTraceePath() {
  return Built("tests/recorder/perf/recorder_perf_tracee");
}

class HardwareTest : public HardwareFixture {
 protected:
  // Of which a thread that naps for a millisecond has some 900 in a second.
  static constexpr int kSlicesMin = 20;

  // How many slices each thread has, by `clew decode --as slices`.
  std::map<int, int> Slices(const std::string& bundle) {
    std::map<int, int> slices;
    const auto file = scratch_.Path("slices.json");
    const auto run =
        ClewInto(file, {"decode", "--as", "slices", "--json", bundle});
    EXPECT_EQ(run.exit_status, 0) << run.text;
    std::ifstream text(file);
    const json document = json::parse(text);
    for (const json& slice : document["items"]) {
      ++slices[slice["thread"].get<int>()];
    }
    return slices;
  }

  // How often perf saw each thread go out; it must not complain.
  std::map<int, int> SwitchesOfPerf(const std::string& bundle) {
    const std::string file = scratch_.Path("script.txt");
    const auto run = Shell("perf script --show-switch-events -F tid,event -i " +
                           bundle + "/perf.data > " + file + " 2>&1");
    EXPECT_EQ(run.exit_status, 0);
    std::map<int, int> outs;
    std::ifstream text(file);
    for (std::string line; std::getline(text, line);) {
      std::istringstream words(line);
      int tid = 0;
      EXPECT_TRUE(words >> tid) << "perf says: " << line;
      outs[tid] += line.find(" OUT ") != std::string::npos ? 1 : 0;
    }
    return outs;
  }
};

TEST_F(HardwareTest, ALaunchedProgramHasItsThreadsAndSwitches) {
  const std::string bundle = scratch_.Path("b");
  const auto run = Clew(Record(bundle, {"--", PerfTraceePath()}));
  ASSERT_EQ(run.exit_status, 0) << run.text;
  const json info = Info(bundle);
  EXPECT_FALSE(info["has_pt"]);
  EXPECT_EQ(info["command"], json::array({PerfTraceePath()}));
  EXPECT_EQ(info["loss"]["records"], 0);
  std::map<int, std::string> names;
  for (const json& thread : info["threads"]) {
    names[thread["thread"]] = thread["name"];
  }
  const auto slices = Slices(bundle);
  std::istringstream report(run.text);
  int threads = 0;
  for (int index, tid, switches; report >> index >> tid >> switches;) {
    EXPECT_EQ(names[tid], "clew-" + std::to_string(index));
    EXPECT_GE(slices.at(tid), switches);
    ++threads;
  }
  EXPECT_EQ(threads, 8);
  const auto of_perf = SwitchesOfPerf(bundle);
  for (const auto& [tid, count] : slices) {
    EXPECT_NEAR(of_perf.at(tid), count, 1) << tid;
  }
  // The file that the mappings name is there.
  EXPECT_TRUE(fs::exists(bundle + "/images"));
  for (const json& missing : info["images_missing"]) {
    EXPECT_THAT(missing["path"].get<std::string>(), testing::StartsWith("["));
    EXPECT_NE(missing["path"], "[vdso]");
  }
  const auto decode = Clew({"decode", bundle});
  EXPECT_EQ(decode.exit_status, 3);
  EXPECT_THAT(decode.text, HasSubstr("no Intel PT in it"));
  const auto solve = Clew({"solve", bundle});
  EXPECT_EQ(solve.exit_status, 3);
  EXPECT_THAT(solve.text, HasSubstr("was recorded in hardware"));
  const auto text = Clew({"info", "--no-backtraces", bundle});
  EXPECT_THAT(text.text, HasSubstr("no Intel PT in it"));
}

// Threads of this process, sleeping and waking up.
class Sleepers {
 public:
  Sleepers() {
    for (int i = 0; i < 4; ++i) {
      threads_.emplace_back([this, i] {
        prctl(PR_SET_NAME, ("sleeper-" + std::to_string(i)).c_str());
        tids_[static_cast<size_t>(i)] = static_cast<int>(syscall(SYS_gettid));
        while (!end_) {
          Nap();
        }
      });
    }
    for (const auto& tid : tids_) {
      while (tid == 0) {
        Nap();
      }
    }
  }
  Sleepers(const Sleepers&) = delete;
  Sleepers& operator=(const Sleepers&) = delete;
  ~Sleepers() {
    end_ = true;
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }
  std::vector<int> tids() const { return {tids_.begin(), tids_.end()}; }

 private:
  std::atomic<bool> end_ = false;
  std::array<std::atomic<int>, 4> tids_ = {};
  std::vector<std::thread> threads_;
};

TEST_F(HardwareTest, AProcessIsAttachedToWithAllItsThreads) {
  const Sleepers sleepers;
  for (const bool snapshot : {false, true}) {
    const std::string bundle = scratch_.Path(snapshot ? "snapshot" : "full");
    std::vector<std::string> words = {"--pid", std::to_string(getpid())};
    if (snapshot) {
      words.emplace_back("--snapshot");
    }
    ASSERT_TRUE(RecordUntil(bundle, words, [&] {
      auto slices = Slices(bundle);
      return std::ranges::all_of(
          sleepers.tids(), [&](int tid) { return slices[tid] > kSlicesMin; });
    }));
    std::set<std::string> names;
    const json info = Info(bundle);
    for (const json& thread : info["threads"]) {
      names.insert(thread["name"]);
    }
    EXPECT_TRUE(names.contains("sleeper-3"));
    EXPECT_THAT(Clew({"info", "--no-backtraces", bundle}).text,
                HasSubstr("failure       not known"));
  }
}

TEST_F(HardwareTest, TheWholeHostHasThreadsOfOthers) {
  const Sleepers sleepers;
  const std::string bundle = scratch_.Path("b");
  std::map<int, int> slices;
  ASSERT_TRUE(RecordUntil(bundle, {"--system-wide"}, [&] {
    slices = Slices(bundle);
    return slices.size() > 5 &&
           std::ranges::all_of(sleepers.tids(),
                               [&](int tid) { return slices.contains(tid); });
  }));
  if (const json lost = Info(bundle)["loss"]["records"]; lost != 0) {
    GTEST_SKIP() << "this host is so busy that " << lost << " records are lost";
  }
  const auto of_perf = SwitchesOfPerf(bundle);
  for (const int tid : sleepers.tids()) {
    EXPECT_NEAR(of_perf.at(tid), slices.at(tid), 2);
  }
}

// Where cgroup v2 is mounted; empty: nowhere.
std::string CgroupMount() {
  std::ifstream mounts("/proc/mounts");
  for (std::string what, where, type, rest;
       mounts >> what >> where >> type && std::getline(mounts, rest);) {
    if (type == "cgroup2") {
      return where;
    }
  }
  return {};
}

TEST_F(HardwareTest, ACgroupIsRecordedAndNobodyElse) {
  const std::string name = "clew-test-" + std::to_string(getpid()) + ".service";
  const std::string folder = CgroupMount() + "/" + name;
  std::error_code error;
  if (CgroupMount().empty() || !fs::create_directory(folder, error)) {
    GTEST_SKIP() << "no cgroup v2 that this user may write to";
  }
  const Sleepers outside;
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) {
      Nap();
    }
  }
  std::ofstream(folder + "/cgroup.procs") << child << std::flush;
  const std::vector<std::vector<std::string>> targets = {{"--cgroup", folder},
                                                         {"--unit", name}};
  for (const auto& target : targets) {
    const std::string bundle = scratch_.Path(target[0]);
    std::map<int, int> slices;
    EXPECT_TRUE(RecordUntil(bundle, target, [&] {
      slices = Slices(bundle);
      return slices[child] > kSlicesMin;
    }));
    EXPECT_EQ(slices.size(), 1u);
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(test::WaitUntil([&] { return fs::remove(folder, error); }))
      << error.message();
}

TEST_F(HardwareTest, ACrashIsAFindingAndItsCoreDumpIsInTheBundle) {
  const std::string folder = scratch_.Path("work");
  fs::create_directory(folder);
  const auto run =
      Shell("cd " + folder + " && ulimit -c unlimited && exec " + Binary() +
            " record --source perf --sideband-only --json -o b.clew -- "
            "sh -c 'kill -SEGV $$'");
  EXPECT_EQ(run.exit_status, 1) << run.text;
  const json report = JsonIn(run.text);
  EXPECT_EQ(report["failure"]["kind"], "signal");
  EXPECT_EQ(report["failure"]["signal"], SIGSEGV);
  std::ifstream pattern("/proc/sys/kernel/core_pattern");
  std::string first;
  std::getline(pattern, first);
  if (first != "core") {
    GTEST_SKIP() << "kernel.core_pattern is " << first;
  }
  EXPECT_TRUE(report["core"]) << run.text;
  EXPECT_NE(report["failure"]["ip"], "0x0");
  EXPECT_TRUE(fs::exists(folder + "/b.clew/core"));
}

TEST_F(HardwareTest, WhatCannotBeRecordedIsRefusedAndLeavesNothing) {
  const std::string bundle = scratch_.Path("b");
  struct Case {
    std::vector<std::string> words;
    int exit_status;
    const char* says;
  };
  const std::vector<Case> cases = {
      {{"--pid", "999999999"}, 2, "there is no process 999999999"},
      {{"--pid", "1", "--system-wide"}, 2, "wanted one of"},
      {{}, 2, "wanted one of"},
      {{"--unit", "none-such.service"}, 2, "no unit \"none-such.service\""},
      {{"--cgroup", "/none/such"}, 3, "cannot open cgroup \"/none/such\""},
      {{"--buffer", "4M", "--", "/bin/true"}, 2, "--sideband-only records no"},
      {{"--seed", "3", "--", "/bin/true"},
       2,
       "--seed is not for --source perf"},
      {{"--", "/none/such"}, 2, "no executable file"}};
  for (const Case& wrong : cases) {
    const auto run = Clew(Record(bundle, wrong.words));
    EXPECT_EQ(run.exit_status, wrong.exit_status) << run.text;
    EXPECT_THAT(run.text, HasSubstr(wrong.says));
    EXPECT_FALSE(fs::exists(bundle) || fs::exists(bundle + ".partial"));
  }
  if (!fs::exists("/sys/bus/event_source/devices/intel_pt")) {
    const auto run =
        Clew({"record", "--source", "perf", "-o", bundle, "--", "/bin/true"});
    EXPECT_EQ(run.exit_status, 3);
    EXPECT_THAT(run.text, testing::AllOf(HasSubstr("no intel_pt event source"),
                                         HasSubstr("--sideband-only"),
                                         HasSubstr("--source tracer")));
  }
}

}  // namespace
}  // namespace clew::e2e
