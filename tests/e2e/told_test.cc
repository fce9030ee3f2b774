// Goal: the race that `clew solve` tells is the one that is marked in the
// program's source, and of a deadlock it tells who holds and who waits for
// what, by line. Method: small programs of different kinds, each with accesses
// beside the bug that are none (a counter with its lock, the threads' own
// statistics), recorded until they fail and solved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "common/result.h"
#include "tests/e2e/clew_command.h"

namespace clew::e2e {
namespace {

using testing::HasSubstr;

// What follows "// " in each line of a source file that has such a comment.
std::map<int, std::string> MarksIn(const std::string& file) {
  std::map<int, std::string> marks;
  std::ifstream source(file);
  std::string line;
  for (int number = 1; std::getline(source, line); ++number) {
    const size_t mark = line.find("  // ");
    if (mark != std::string::npos) {
      marks[number] = line.substr(mark + 5);
    }
  }
  return marks;
}

std::string MarkOf(const nlohmann::json& place) {
  const auto marks = MarksIn(place.value("file", ""));
  const auto mark = marks.find(place.value("line", 0));
  return mark == marks.end() ? "" : mark->second;
}

struct Solved {
  nlohmann::json report;
  std::string text;
};

std::optional<Solved> Solve(const std::string& program) {
  const Scratch scratch;
  const std::string bundle = scratch.Path("bundle");
  RecordFailure(bundle, program, 1);
  const ProgramOutput output = ClewAtLeisure("solve", {"--json", bundle});
  EXPECT_EQ(output.exit_status, kExitOk) << output.text;
  Solved solved = {.report = nlohmann::json::parse(output.text, nullptr, false),
                   .text = ClewAtLeisure("solve", {bundle}).text};
  if (!solved.report.is_object()) {
    return std::nullopt;
  }
  return solved;
}

class RaceToldTest : public testing::TestWithParam<const char*> {};

TEST_P(RaceToldTest, IsTheMarkedOne) {
  const auto solved = Solve(std::string("races/") + GetParam());
  ASSERT_TRUE(solved);
  const nlohmann::json& races = solved->report["races"];
  ASSERT_FALSE(races.empty()) << solved->text;
  EXPECT_FALSE(races[0].value("internal", true));
  const nlohmann::json& accesses = races[0]["accesses"];
  ASSERT_GE(accesses.size(), 2u);
  std::set<int> threads;
  for (const nlohmann::json& access : accesses) {
    EXPECT_EQ(MarkOf(access), "race") << access.dump();
    threads.insert(access.value("thread", 0));
  }
  EXPECT_EQ(threads.size(), 2u);
  for (const nlohmann::json& race : races) {
    for (const nlohmann::json& access : race["accesses"]) {
      EXPECT_FALSE(!race.value("internal", true) && MarkOf(access) == "no race")
          << race.dump();
    }
  }
  EXPECT_THAT(solved->text, HasSubstr("  race   "));
  EXPECT_EQ(solved->text.find("\"\" (\"\":0)"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Programs, RaceToldTest,
                         testing::Values("atomic_apart", "check_then_use",
                                         "lost_update", "use_after_free"),
                         [](const auto& test) {
                           return std::string(test.param);
                         });

// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(More, RaceToldTest,
                         testing::Values("closed_early", "copied_text",
                                         "early_start", "read_locked",
                                         "shared_position", "spun", "torn_pair",
                                         "two_sections", "wrong_lock"),
                         [](const auto& test) {
                           return std::string(test.param);
                         });

// A thread of the cycle, as marks: what it holds, and what it wants.
struct Link {
  const char* holds;  // nullptr: nothing
  const char* wants;
};
struct Deadlock {
  const char* program;
  std::vector<Link> cycle;  // as it is told, up to where it begins
};

class DeadlockToldTest : public testing::TestWithParam<Deadlock> {};

std::pair<std::string, std::string> MarksOf(const nlohmann::json& wait) {
  const nlohmann::json& holds = wait["holds"];
  return {holds.empty() ? "" : MarkOf(holds[0]), MarkOf(wait)};
}

TEST_P(DeadlockToldTest, IsTheCycle) {
  const auto solved = Solve(std::string("deadlocks/") + GetParam().program);
  ASSERT_TRUE(solved);
  std::multiset<std::pair<std::string, std::string>> told;
  size_t cycle = 0;
  for (const nlohmann::json& wait : solved->report["waits"]) {
    // Those of the cycle come first.
    EXPECT_EQ(wait.value("in_cycle", false), cycle < GetParam().cycle.size());
    if (wait.value("in_cycle", false)) {
      ++cycle;
      told.insert(MarksOf(wait));
    }
  }
  std::multiset<std::pair<std::string, std::string>> wanted;
  for (const Link& link : GetParam().cycle) {
    wanted.emplace(
        link.holds == nullptr ? "" : std::string("holds ") + link.holds,
        std::string("wants ") + link.wants);
  }
  EXPECT_EQ(told, wanted) << solved->report["waits"].dump(1);
  EXPECT_THAT(solved->text, HasSubstr("  deadlock   "));
  EXPECT_EQ(solved->text.find("  race   "), std::string::npos) << solved->text;
}

INSTANTIATE_TEST_SUITE_P(
    Programs, DeadlockToldTest,
    testing::Values(
        Deadlock{"two_locks", {{"left", "right"}, {"right", "left"}}},
        Deadlock{"read_write_lock",
                 {{"journal", "table"}, {"table", "journal"}}},
        Deadlock{"condition", {{"state", "filled"}, {nullptr, "state"}}},
        Deadlock{"join_under_lock",
                 {{"workers", "thread"}, {nullptr, "workers"}}}),
    [](const auto& test) { return std::string(test.param.program); });

// In tools/test --all.
INSTANTIATE_TEST_SUITE_P(
    More, DeadlockToldTest,
    testing::Values(Deadlock{
        "three_locks",
        {{"north", "east"}, {"east", "west"}, {"west", "north"}}}),
    [](const auto& test) { return std::string(test.param.program); });

TEST(WaitsTest, OfAHangWithoutACycleAreTold) {
  const auto solved = Solve("lost_wakeup");
  ASSERT_TRUE(solved);
  EXPECT_THAT(solved->text, HasSubstr("  waiting   "));
  EXPECT_THAT(solved->text, HasSubstr("waits for condition variable"));
  for (const nlohmann::json& wait : solved->report["waits"]) {
    EXPECT_FALSE(wait.value("in_cycle", true));
  }
}

// The lines are gone, and so are the names of what is not exported.
TEST(RaceNamesTest, ComeFromTheImageWhereThereIsNoDebugInformation) {
  const Scratch scratch;
  const std::string program = scratch.Path("lost_update");
  ASSERT_EQ(
      e2e::Run({"/usr/bin/strip", "-o", program, Tracee("races/lost_update")})
          .exit_status,
      0);
  const std::string bundle = scratch.Path("bundle");
  ASSERT_EQ(Clew({"record", "--until-fail", "--seed", "1", "-o", bundle, "--",
                  program})
                .exit_status,
            kExitFinding);
  const std::string text = ClewAtLeisure("solve", {bundle}).text;
  EXPECT_THAT(text, HasSubstr("  race   "));
  EXPECT_THAT(text, testing::ContainsRegex("thread [0-9]+ writes [0-9]+ at .*, "
                                           "\"lost_update\"\\+0x[0-9a-f]+"));
  EXPECT_EQ(text.find("\"\""), std::string::npos) << text;
}

}  // namespace
}  // namespace clew::e2e
