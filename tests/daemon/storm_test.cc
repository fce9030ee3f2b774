// Goal: of many crashes at once nothing is half and all is counted, and no user
// has more than half of what there is.
// Method: the built clewd and handlers as the kernel would start them, victims
// of one user and of many.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tests/daemon/attack_fixture.h"
#include "tests/daemon/support.h"

namespace clew::daemon {
namespace {

using testing::AttackTest;
using testing::json;
using testing::NamesIn;
using testing::Process;
using testing::ReadText;
using testing::WaitUntil;
using testing::WriteText;

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
  const auto other = run_as("65533");
  ASSERT_TRUE(WaitUntil([&] { return IsSleep(other->id()); }));
  const auto began = std::chrono::steady_clock::now();
  DumpCore(other->id(), "core of the other", SIGSEGV);
  const pb::Manifest manifest = OnlyReady();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(2));
  EXPECT_EQ(manifest.trigger().process(), other->id());
  EXPECT_EQ(ReadText(folder_ + "/core"), "core of the other");
  EXPECT_EQ(Status()["counters"]["refused_busy"], 4);
}

// CLEW_STORM_CRASHES of them, or 20; 20 a second, and no rate limits them.
TEST_F(AttackTest, OfAStormNothingIsHalfAndAllIsCounted) {
  const char* wanted = getenv("CLEW_STORM_CRASHES");
  const uint64_t crashes =
      wanted == nullptr ? 20 : strtoull(wanted, nullptr, 10);
  const std::string core = "core" + std::string(2'000'000, 'c') + "end";
  WriteText(At("core"), core);
  std::vector<std::unique_ptr<Process>> all;
  for (uint64_t i = 0; i < crashes; ++i) {
    all.push_back(std::make_unique<Process>(
        std::vector<std::string>{"/bin/sleep", "1000"}, At("victim")));
    const Fd input(open(At("core").c_str(), O_RDONLY));
    ASSERT_TRUE(WaitUntil([&] { return IsSleep(all.back()->id()); }));
    all.push_back(std::unique_ptr<Process>(
        new Process(Handler(all.back()->id(), SIGSEGV, input.get()))));
    usleep(50'000);
  }
  for (size_t i = 1; i < all.size(); i += 2) {
    EXPECT_TRUE(all[i]->EndsWithin(20'000));
  }
  const auto told = [&] {
    const json status = Status();
    const json& counters = status["counters"];
    return counters["saved"].get<uint64_t>() +
           counters["refused_busy"].get<uint64_t>() +
           counters["refused_rate"].get<uint64_t>() +
           counters["refused_budget"].get<uint64_t>() +
           status["clients_refused"].get<uint64_t>();
  };
  EXPECT_TRUE(WaitUntil([&] { return told() == crashes; }, 60'000)) << told();
  const json status = Status();
  RecordProperty("saved", status["counters"]["saved"].dump());
  EXPECT_GT(status["counters"]["saved"], 1);
  EXPECT_EQ(status["counters"]["cores_cut"], 0);
  EXPECT_EQ(status["counters"]["save_failures"], 0);
  EXPECT_TRUE(NamesIn(Spool("incoming")).empty());
  for (const std::string& name : NamesIn(Spool("ready"))) {
    EXPECT_TRUE(ReadText(Spool("ready/" + name) + "/core") == core) << name;
    pb::Manifest manifest;
    EXPECT_TRUE(manifest.ParseFromString(
        ReadText(Spool("ready/" + name) + "/manifest.pb")));
  }
  fmt::print("storm of {}: {}\n", crashes, status["counters"].dump());
}

}  // namespace
}  // namespace clew::daemon
