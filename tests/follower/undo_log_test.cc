// Goal: an undo log gives back what was added since a mark, the latest first.
#include "follower/undo_log.h"

#include <gtest/gtest.h>

#include <vector>

namespace clew::follower {
namespace {

using Log = UndoLog<int, int>;

std::vector<int> StepsBack(Log& log, Log::Mark mark) {
  std::vector<int> steps;
  log.RollBack(mark, [&](int step) { steps.push_back(step); });
  return steps;
}

TEST(UndoLogTest, GivesBackTheLatestFirstAndKeepsTheMark) {
  Log log;
  const Log::Mark first = log.SetMark(0);
  log.Add(1);
  const Log::Mark second = log.SetMark(0);
  log.Add(2);
  log.Add(3);
  EXPECT_EQ(StepsBack(log, second), (std::vector{3, 2}));
  log.Add(4);
  EXPECT_EQ(StepsBack(log, first), (std::vector{4, 1}));
  EXPECT_TRUE(log.has_marks());
  EXPECT_TRUE(StepsBack(log, first).empty());
}

TEST(UndoLogTest, RollingBackGivesTheMarksMemory) {
  Log log;
  const Log::Mark first = log.SetMark(7);
  log.SetMark(8);
  EXPECT_EQ(log.RollBack(first, [](int) {}), 7);
}

TEST(UndoLogTest, ACopyIsEmpty) {
  Log log;
  log.SetMark(0);
  Log copy(log);
  EXPECT_FALSE(copy.has_marks());
  copy.SetMark(0);
  copy = log;
  EXPECT_FALSE(copy.has_marks());
  EXPECT_TRUE(log.has_marks());
}

}  // namespace
}  // namespace clew::follower
