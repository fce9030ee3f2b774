// Goal: of many crashes at once nothing is half and all is counted, and no user
// has more than half of what there is.
// Method: the built clewd and handlers as the kernel would start them, victims
// of one user and of many. How many of a storm are refused is the machine's
// business: what is expected holds for each number.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/control/control.h"
#include "daemon/spool/spool.h"
#include "tests/daemon/attack_fixture.h"
#include "tests/daemon/support.h"

namespace clew::daemon {
namespace {

using test::AttackTest;
using test::json;
using test::kNobody;
using test::kOther;
using test::NamesIn;
using test::Process;
using test::ReadText;
using test::WaitUntil;
using test::WriteText;

// Core dumps that never end hold at most half of the saves: those of others go
// on, and what is refused is counted.
TEST_F(AttackTest, SlowCoreDumpsOfOneUserDoNotHoldUpThoseOfAnother) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root, to run a program as another user";
  }
  const auto run_as = [&](const std::string& user) {
    return std::make_unique<Process>(
        std::vector<std::string>{"/usr/bin/setpriv", "--reuid", user,
                                 "--clear-groups", "/bin/sleep", "1000"},
        At("victim"));
  };
  std::array<int, 2> ends = {};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd never_ends(ends[0]);
  const Fd writer(ends[1]);
  std::vector<std::unique_ptr<Process>> victims;
  std::vector<std::unique_ptr<Process>> handlers;
  for (uint64_t i = 0; i < 6; ++i) {
    victims.push_back(run_as("65534"));
    ASSERT_TRUE(WaitUntil([&] { return IsSleep(victims.back()->id()); }));
    handlers.push_back(std::unique_ptr<Process>(new Process(
        Handler(victims.back()->id(), SIGSEGV + static_cast<int>(i % 2),
                never_ends.get()))));
    ASSERT_TRUE(WaitUntil([&] {
      const json counters = Status()["counters"];
      return counters["triggers"] == i + 1 || counters["refused_busy"] == i;
    }));
  }
  ASSERT_TRUE(WaitUntil([&] { return Status()["counters"]["triggers"] == 6; }));
  EXPECT_EQ(Status()["counters"]["refused_busy"], 4);
  const auto running = [&] {
    return std::ranges::count_if(
        handlers, [](const auto& handler) { return handler->IsRunning(); });
  };
  ASSERT_TRUE(WaitUntil([&] { return running() == 2; }));
  const auto other = run_as("65533");
  ASSERT_TRUE(WaitUntil([&] { return IsSleep(other->id()); }));
  const auto began = std::chrono::steady_clock::now();
  DumpCore(other->id(), "core of the other", SIGSEGV);
  const pb::Manifest manifest = OnlyReady();
  PrintSince(began);
  // What never ends has not ended: nobody waited for it.
  EXPECT_EQ(Status()["state"], "saving");
  EXPECT_EQ(running(), 2);
  EXPECT_EQ(manifest.trigger().process(), other->id());
  EXPECT_EQ(ReadText(folder_ + "/core"), "core of the other");
  EXPECT_EQ(Status()["counters"]["refused_busy"], 4);
}

// CLEW_STORM_CRASHES of them, or 20; at most 20 a second, and no rate limits
// them.
class StormTest : public AttackTest {
 protected:
  static uint64_t Crashes() {
    const char* wanted = getenv("CLEW_STORM_CRASHES");
    return wanted == nullptr ? 20 : strtoull(wanted, nullptr, 10);
  }
  // Crashes of `users`, one after the other; `midway` is called at half. The
  // first one of each user is taken before the next user's, so that all of
  // these are, if there may be as many saves.
  void Storm(const std::vector<uid_t>& users,
             const std::function<void()>& midway) {
    WriteText(At("core"), core_);
    std::vector<std::unique_ptr<Process>> handlers;
    for (uint64_t i = 0; i < Crashes(); ++i) {
      victims_.push_back(RunAs(users[i % users.size()]));
      const Fd input(open(At("core").c_str(), O_RDONLY | O_CLOEXEC));
      handlers.push_back(std::unique_ptr<Process>(
          new Process(Handler(victims_.back()->id(), SIGSEGV, input.get()))));
      if (i < users.size()) {
        EXPECT_TRUE(WaitUntil([&] { return IsTaken(victims_.back()->id()); }))
            << ReadText(At("log"));
      }
      usleep(50'000);  // the pace, nothing more
      if (i == Crashes() / 2) {
        midway();
      }
    }
    for (const auto& handler : handlers) {
      EXPECT_TRUE(handler->Ends());
    }
  }
  // A bundle of this process is made, or there.
  bool IsTaken(pid_t process) const {
    return std::ranges::any_of(
        std::array{"incoming", "checking", "ready"}, [&](const char* stage) {
          return std::ranges::any_of(
              NamesIn(Spool(stage)), [&](const std::string& name) {
                const auto parsed = ParseName(name);
                return parsed && parsed->process == process;
              });
        });
  }
  std::unique_ptr<Process> RunAs(uid_t user) {
    std::vector<std::string> words = {"/bin/sleep", "1000"};
    if (user != geteuid()) {
      words.insert(words.begin(), {"/usr/bin/setpriv", "--reuid",
                                   std::to_string(user), "--clear-groups"});
    }
    auto process = std::make_unique<Process>(words, At("victim"));
    EXPECT_TRUE(WaitUntil([&] { return IsSleep(process->id()); }));
    return process;
  }
  // Of all triggers, whole in ready/ or counted.
  void ExpectAllAreTold(uint64_t crashes) {
    const auto told = [&] {
      const json status = Status();
      const json& counters = status["counters"];
      return counters["saved"].get<uint64_t>() +
             counters["refused_busy"].get<uint64_t>() +
             counters["refused_rate"].get<uint64_t>() +
             counters["refused_budget"].get<uint64_t>() +
             status["clients_refused"].get<uint64_t>();
    };
    EXPECT_TRUE(WaitUntil([&] { return told() == crashes; }, 5)) << told();
    const json counters = StatusAtRest()["counters"];
    RecordProperty("counters", counters.dump());
    EXPECT_GT(counters["saved"], 1);
    EXPECT_EQ(counters["cores_cut"], 0);
    EXPECT_EQ(counters["save_failures"], 0);
    EXPECT_TRUE(NamesIn(Spool("incoming")).empty());
    EXPECT_EQ(NamesIn(Spool("ready")).size(), counters["saved"]);
    fmt::print(
        "storm of {}: {} saved, {} refused as busy, {} otherwise; "
        "at most {} ms\n",
        crashes, counters["saved"].dump(), counters["refused_busy"].dump(),
        counters["refused_rate"].get<uint64_t>() +
            counters["refused_budget"].get<uint64_t>(),
        Status()["source"]["saved_us_max"].get<uint64_t>() / 1000);
  }
  void ExpectWhole(const std::string& name) {
    const std::string core = ReadText(Spool("ready/" + name) + "/core");
    EXPECT_TRUE(core == core_ || core == "core of another") << name;
    pb::Manifest manifest;
    EXPECT_TRUE(manifest.ParseFromString(
        ReadText(Spool("ready/" + name) + "/manifest.pb")));
  }
  const std::string core_ = "core" + std::string(2'000'000, 'c') + "end";
  std::vector<std::unique_ptr<Process>> victims_;
};

TEST_F(StormTest, NothingIsHalfAndAllIsCounted) {
  Storm({geteuid()}, [] {});
  ExpectAllAreTold(Crashes());
  for (const std::string& name : NamesIn(Spool("ready"))) {
    ExpectWhole(name);
  }
}

TEST_F(StormTest, OfOneUserItLeavesRoomForAnother) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root, to run programs as other users";
  }
  Storm({kNobody}, [&] { ExpectOthersAreSaved(); });
  ExpectAllAreTold(Crashes() + 1);
  for (const std::string& name : NamesIn(Spool("ready"))) {
    ExpectWhole(name);
  }
}

TEST_F(StormTest, OfManyUsersEachIsSaved) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root, to run programs as other users";
  }
  const std::vector<uid_t> users = {60001, 60002, 60003, 60004, 60005};
  Configure(
      "source = sideband\nsideband_only = yes\nmerge = 0\nsaves = 5\n"
      "rate_failure = 1000\nrate_all = 1000\nspool_bytes = 16G\n");
  ASSERT_TRUE(Reply(ReloadRequest()));
  // One more user in the midst of it, who may find all five at work.
  const auto another = RunAs(kOther);
  Storm(users, [&] { DumpCore(another->id(), "core of another", SIGSEGV); });
  ExpectAllAreTold(Crashes() + 1);
  for (size_t i = 0; i < std::min(users.size(), victims_.size()); ++i) {
    EXPECT_FALSE(ReadyOf(victims_[i]->id()).empty()) << users[i];
  }
  // There is room again.
  ExpectOthersAreSaved();
  ExpectAllAreTold(Crashes() + 2);
  for (const std::string& name : NamesIn(Spool("ready"))) {
    ExpectWhole(name);
  }
}

}  // namespace
}  // namespace clew::daemon
