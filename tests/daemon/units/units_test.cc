// Goal: a unit that fails or restarts is told once, and so is one that gives no
// sign of life for its time.
// Method: a fake manager and a clock of the test's own; heartbeat files and
// cgroups in a folder.
#include "daemon/units/units.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <map>
#include <set>
#include <string>

#include "daemon/spool/process_facts.h"
#include "tests/daemon/support.h"

namespace clew::daemon {
namespace {

class FakeManager final : public UnitManager {
 public:
  Status Connect() override {
    ++connections;
    if (silent) {
      return SystemError(ECONNREFUSED, "no bus in this test");
    }
    broken = false;
    return {};
  }
  Result<UnitState> Get(const std::string& unit) override {
    ++questions;
    if (broken) {
      return SystemError(ENOTCONN, "the connection is gone");
    }
    if (strange.contains(unit)) {
      return InvalidArgument("no unit {}", unit);
    }
    if (silent) {
      return SystemError(ETIMEDOUT, "no answer in this test");
    }
    return states[unit];
  }
  std::map<std::string, UnitState> states;
  std::set<std::string> strange;  // that there is none of
  bool silent = false;
  bool broken = true;  // what there was of a connection
  int questions = 0;
  int connections = 0;
};

class UnitsTest : public testing::Test {
 protected:
  test::Scratch scratch_;
  FakeManager manager_;
  UnitWatch watch_{&manager_, scratch_.root()};
};

TEST_F(UnitsTest, AFailureOrARestartIsToldOnce) {
  watch_.SetUnits({{"a.service", true, 0, ""}, {"b.service", false, 0, ""}});
  UnitState& a = manager_.states["a.service"];
  UnitState& b = manager_.states["b.service"];
  a = {.active = true,
       .failed = false,
       .restarts = 3,
       .process = 7,
       .cgroup = ""};
  EXPECT_TRUE(watch_.Poll(0).empty()) << "what was before";
  EXPECT_TRUE(watch_.Poll(1).empty());
  a = {.active = false,
       .failed = true,
       .restarts = 3,
       .process = 0,
       .cgroup = "",
       .ended_by_signal = SIGSEGV};
  b.failed = true;  // not to be told
  auto events = watch_.Poll(2);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].unit, "a.service");
  EXPECT_EQ(events[0].kind, TriggerKind::kUnitFailed);
  EXPECT_EQ(events[0].process, 7) << "the one that it had";
  EXPECT_EQ(events[0].failure.kind, FailureKind::kSignal);
  EXPECT_EQ(events[0].failure.signal, SIGSEGV);
  EXPECT_TRUE(watch_.Poll(3).empty());
  a = {.active = true,
       .failed = false,
       .restarts = 3,
       .process = 8,
       .cgroup = ""};
  EXPECT_TRUE(watch_.Poll(4).empty()) << "started by hand";
  a.restarts = 4;
  events = watch_.Poll(5);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].failure.kind, FailureKind::kNone) << "nobody knows how";
  EXPECT_TRUE(watch_.Poll(6).empty());
}

TEST_F(UnitsTest, ASilentManagerIsAskedOnce) {
  watch_.SetUnits({{"a.service", true, 0, ""}, {"b.service", true, 0, ""}});
  EXPECT_TRUE(watch_.Poll(0).empty());
  manager_.questions = 0;
  manager_.silent = true;
  EXPECT_TRUE(watch_.Poll(0).empty());
  EXPECT_EQ(manager_.questions, 1);
}

TEST_F(UnitsTest, AConnectionThatEndsIsMadeAgainAndWhatFailedIsTold) {
  watch_.SetUnits({{"a.service", true, 0, ""}});
  manager_.states["a.service"].active = true;
  EXPECT_TRUE(watch_.Poll(0).empty());
  EXPECT_EQ(watch_.error(), "");
  manager_.broken = true;
  manager_.silent = true;
  manager_.states["a.service"] = {.failed = true, .cgroup = ""};
  uint64_t now_ms = 0;
  uint64_t pause_ms = UnitWatch::kPauseMsMin;
  for (int tries = 1; tries < 10; ++tries) {
    SCOPED_TRACE(tries);
    EXPECT_TRUE(watch_.Poll(now_ms).empty());
    EXPECT_EQ(manager_.connections, tries);
    EXPECT_NE(watch_.error(), "");
    EXPECT_FALSE(watch_.Report(now_ms)[0].state.has_value()) << "frozen";
    EXPECT_EQ(watch_.Report(now_ms)[0].error, watch_.error());
    EXPECT_TRUE(watch_.Poll(now_ms + pause_ms - 1).empty());
    EXPECT_EQ(manager_.connections, tries) << "without a pause";
    now_ms += pause_ms;
    pause_ms = std::min(pause_ms * 2, UnitWatch::kPauseMsMax);
  }
  EXPECT_EQ(pause_ms, UnitWatch::kPauseMsMax);
  manager_.silent = false;
  EXPECT_EQ(watch_.Poll(now_ms).size(), 1u);
  EXPECT_EQ(watch_.error(), "");
  EXPECT_TRUE(watch_.Report(now_ms)[0].state->failed);
  EXPECT_TRUE(watch_.Poll(now_ms + 1).empty());
}

TEST_F(UnitsTest, AUnitThatNobodyKnowsDoesNotHideTheOthers) {
  watch_.SetUnits({{"a.service", true, 0, ""}, {"b.service", true, 0, ""}});
  manager_.strange.insert("a.service");
  EXPECT_TRUE(watch_.Poll(0).empty());
  manager_.states["b.service"].failed = true;
  const auto events = watch_.Poll(1);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].unit, "b.service");
  EXPECT_EQ(watch_.error(), "") << "the manager answers";
  EXPECT_EQ(watch_.Report(1)[0].error, "no unit a.service");
  EXPECT_EQ(watch_.Report(1)[1].error, "");
  EXPECT_EQ(manager_.connections, 1);
}

TEST_F(UnitsTest, AHeartbeatThatStopsIsAHangOnce) {
  const std::string file = scratch_.Path("alive");
  UnitWatch watch(nullptr, scratch_.root());
  watch.SetUnits({{"a.service", true, 10, file}});
  EXPECT_TRUE(watch.Poll(0).empty());
  EXPECT_TRUE(watch.Poll(100'000).empty()) << "not there: not started yet";
  test::WriteText(file, "1");
  EXPECT_TRUE(watch.Poll(100'000).empty());
  EXPECT_TRUE(watch.Poll(109'999).empty());
  auto events = watch.Poll(110'000);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].kind, TriggerKind::kHang);
  EXPECT_TRUE(watch.Poll(130'000).empty()) << "told already";
  const timespec later[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, file.c_str(), later, 0), 0);
  EXPECT_TRUE(watch.Poll(131'000).empty());
  EXPECT_EQ(watch.Poll(141'000).size(), 1u) << "the next hang";
  EXPECT_EQ(watch.Report(142'000)[0].quiet_s, 11u);
}

TEST_F(UnitsTest, CpuTimeThatDoesNotGrowIsAHangOfAUnitThatRuns) {
  const std::string stat = scratch_.Path("system.slice/a.service/cpu.stat");
  watch_.SetUnits({{"a.service", true, 10, ""}});
  UnitState& a = manager_.states["a.service"];
  a = {.active = true,
       .failed = false,
       .restarts = 0,
       .process = 7,
       .cgroup = "/system.slice/a.service"};
  for (uint64_t now_ms = 0; now_ms < 50'000; now_ms += 5'000) {
    test::WriteText(stat, fmt::format("usage_usec {}\nuser_usec 1\n", now_ms));
    EXPECT_TRUE(watch_.Poll(now_ms).empty()) << now_ms;
  }
  EXPECT_EQ(watch_.Poll(55'000).size(), 1u);
  a.active = false;
  EXPECT_TRUE(watch_.Poll(90'000).empty());
}

TEST_F(UnitsTest, AReloadKeepsWhatIsKnown) {
  const std::string file = scratch_.Path("alive");
  test::WriteText(file, "1");
  UnitWatch watch(nullptr, scratch_.root());
  watch.SetUnits({{"a.service", true, 10, file}});
  EXPECT_TRUE(watch.Poll(0).empty());
  watch.SetUnits({{"a.service", true, 10, file}, {"b.service", true, 0, ""}});
  EXPECT_EQ(watch.Poll(10'000).size(), 1u);
}

TEST(UnitOfCgroupTest, TakesTheInnermostUnit) {
  EXPECT_EQ(UnitOfCgroup("0::/system.slice/a.service"), "a.service");
  EXPECT_EQ(UnitOfCgroup("0::/system.slice/a.service/sub/x"), "a.service");
  EXPECT_EQ(
      UnitOfCgroup("0::/user.slice/user@1000.service/app.slice/b.service"),
      "b.service");
  EXPECT_EQ(UnitOfCgroup("0::/"), "");
  EXPECT_EQ(UnitOfCgroup(""), "");
}

}  // namespace
}  // namespace clew::daemon
