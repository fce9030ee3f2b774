// Goal: an undo log gives back what was added since a mark, the latest first,
// and keeps of a step only what was there before it.
#include "follower/undo_log.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace clew::follower {
namespace {

struct Entry {
  int step = 0;
  std::optional<int> value;
};
using Log = UndoLog<Entry, int>;

std::vector<int> StepsBack(Log& log, Log::Mark mark) {
  std::vector<int> steps;
  log.RollBack(mark, [&](const Entry& entry) { steps.push_back(entry.step); });
  return steps;
}

TEST(UndoLogTest, GivesBackTheLatestFirstAndKeepsTheMark) {
  Log log;
  const Log::Mark first = log.SetMark(0);
  log.Add({.step = 1, .value = {}});
  const Log::Mark second = log.SetMark(0);
  log.Add({.step = 2, .value = {}});
  log.Add({.step = 3, .value = {}});
  EXPECT_EQ(StepsBack(log, second), (std::vector{3, 2}));
  log.Add({.step = 4, .value = {}});
  EXPECT_EQ(StepsBack(log, first), (std::vector{4, 1}));
  EXPECT_TRUE(log.has_marks());
  EXPECT_TRUE(StepsBack(log, first).empty());
}

TEST(UndoLogTest, RollingBackGivesTheMarksMemory) {
  Log log;
  const Log::Mark first = log.SetMark(7);
  log.SetMark(8);
  EXPECT_EQ(log.RollBack(first, [](const Entry&) {}), 7);
}

TEST(UndoLogTest, KeepsTheFirstValueOfAStep) {
  Log log;
  log.KeepOnce(&Entry::value, 1);  // of no step: not kept
  const Log::Mark mark = log.SetMark(0);
  log.Add({.step = 1, .value = {}});
  log.KeepOnce(&Entry::value, 2);
  log.KeepOnce(&Entry::value, 3);
  std::optional<int> kept;
  log.RollBack(mark, [&](const Entry& entry) { kept = entry.value; });
  EXPECT_EQ(kept, 2);
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
