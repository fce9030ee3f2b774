// Goal: `clew doctor` tries clewd under the restrictions of its unit, and says
// of each source what clewd said.
// Method: what systemctl and systemd-run print is the test's. That systemd
// takes these settings is for tests/vm.
#include "cli/host/unit_checks.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace clew::cli {
namespace {

constexpr const char* kShown =
    "Type=notify\n"
    "ExecStart={ path=/usr/sbin/clewd ; argv[]=/usr/sbin/clewd }\n"
    "RuntimeDirectory=clew\n"
    "CapabilityBoundingSet=cap_perfmon cap_kill\n"
    "AmbientCapabilities=\n"
    "SystemCallFilter=accept perf_event_open\n"
    "LimitMEMLOCK=1073741824\n"
    "LimitMEMLOCKSoft=1073741824\n"
    "LoadState=loaded\n";

// Answers of a host; the commands that were run stay in `commands`.
struct Host {
  std::string shown = kShown;
  std::string said = {};
  int exit_status = 0;
  std::vector<std::vector<std::string>> commands = {};
  RunFunction Run() {
    return [this](const auto& command) -> Result<ProgramOutput> {
      commands.push_back(command);
      return command[0] == "systemctl" ? ProgramOutput{0, shown}
                                       : ProgramOutput{exit_status, said};
    };
  }
};

TEST(UnitChecks, TheCommandHasTheRestrictionsAndNothingElseOfTheUnit) {
  const std::vector<std::string> wanted = {
      "systemd-run",
      "--quiet",
      "--wait",
      "--pipe",
      "--collect",
      "--property=CapabilityBoundingSet=cap_perfmon cap_kill",
      "--property=SystemCallFilter=accept perf_event_open",
      "--property=LimitMEMLOCK=1073741824",
      "--",
      "/usr/sbin/clewd",
      "--try-sources"};
  EXPECT_EQ(CommandInUnit(kShown), wanted);
}

TEST(UnitChecks, EachSourceHasACheckThatSaysWhatClewdSaid) {
  Host host{.said = R"({"perf":"no intel_pt event source","sideband":""})"};
  const auto checks = CheckUnit(host.Run(), /*root=*/true);
  ASSERT_EQ(checks.size(), 2U);
  EXPECT_EQ(checks[0].name, "unit_sideband");
  EXPECT_TRUE(checks[0].ok);
  EXPECT_EQ(checks[1].name, "unit_perf");
  EXPECT_FALSE(checks[1].ok);
  EXPECT_EQ(checks[1].found, "clewd.service cannot: no intel_pt event source");
  ASSERT_EQ(host.commands.size(), 2U);
  EXPECT_EQ(host.commands[1], CommandInUnit(kShown));
}

TEST(UnitChecks, ASourceThatClewdDoesNotNameIsNotCalledFine) {
  Host host{.said = "{}"};
  for (const HostCheck& check : CheckUnit(host.Run(), true)) {
    EXPECT_FALSE(check.ok) << check.name;
  }
}

TEST(UnitChecks, WhatCannotBeTriedIsSaidAndNothingIsStarted) {
  Host absent{.shown = "LoadState=not-found\n"};
  const auto checks = CheckUnit(absent.Run(), true);
  ASSERT_EQ(checks.size(), 1U);
  EXPECT_EQ(checks[0].found, "clewd is not installed");
  EXPECT_EQ(absent.commands.size(), 1U);
  Host chroot{.shown = ""};
  EXPECT_EQ(CheckUnit(chroot.Run(), true)[0].found,
            "systemd does not run here");
  Host user;
  EXPECT_EQ(CheckUnit(user.Run(), /*root=*/false)[0].found, "not tried");
  EXPECT_EQ(user.commands.size(), 1U);
}

TEST(UnitChecks, ATrialThatFailsIsNoSuccess) {
  for (const char* said : {"", "clewd: no\n", "[]"}) {
    Host host{.said = said, .exit_status = 218};
    const auto checks = CheckUnit(host.Run(), true);
    ASSERT_EQ(checks.size(), 1U) << said;
    EXPECT_FALSE(checks[0].ok) << said;
    EXPECT_NE(checks[0].found.find("218"), std::string::npos);
  }
}

}  // namespace
}  // namespace clew::cli
