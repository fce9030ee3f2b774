// Goal: each class is told from what commands print and how they end, and the
// table of expectations is read as written, or refused with its line.
// Method: one made-up set of outputs for each class; rows of every wrong form.
#include "tests/fidelity/outcome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "common/result.h"
#include "tests/fidelity/expected.h"
#include "tests/fidelity/run_case.h"

namespace clew::fidelity {
namespace {

using testing::HasSubstr;

const Ran kOk{0, "ok\n", "clew: run.clew: did not fail\n"};

Class ClassOf(const Ran& recorded,
              const std::optional<Ran>& solved = std::nullopt,
              const std::optional<Ran>& replayed = std::nullopt) {
  const auto outcome = SettledBy({kOk, recorded, solved, replayed});
  EXPECT_TRUE(outcome);
  return outcome ? outcome->which : Class::kBroken;
}

TEST(OutcomeTest, EachClassIsTold) {
  EXPECT_EQ(ClassOf(kOk, kOk, kOk), Class::kSame);
  EXPECT_EQ(ClassOf({3, "", "clew: cannot record it"}), Class::kRefused);
  EXPECT_EQ(ClassOf({1, "line 5: x", "clew: it may be the recorder's: x"}),
            Class::kDoubted);
  EXPECT_EQ(ClassOf({1, "line 5: x", "clew: failed"}), Class::kMadeUp);
  EXPECT_EQ(ClassOf({0, "line 5: x", "clew: did not fail"}), Class::kMadeUp);
  EXPECT_EQ(ClassOf({124, "ok\n", ""}), Class::kEndless);
  EXPECT_EQ(ClassOf({137, "ok\n", ""}), Class::kEndless);
  EXPECT_EQ(ClassOf({134, "", ""}), Class::kKilled);
  EXPECT_EQ(ClassOf({70, "", "clew: bug"}), Class::kBroken);
  EXPECT_EQ(ClassOf(kOk, Ran{1, "it contradicts itself", ""}),
            Class::kImpossible);
  EXPECT_EQ(ClassOf(kOk, Ran{3, "", "clew: futex command 7"}),
            Class::kUnfollowed);
  EXPECT_EQ(ClassOf(kOk, Ran{5, "", ""}), Class::kNoAnswer);
  EXPECT_EQ(ClassOf(kOk, Ran{124, "", ""}), Class::kNoAnswer);
  EXPECT_EQ(ClassOf(kOk, Ran{70, "",
                             "clew: clew's model of the kernel or the "
                             "CPU differs from what was recorded"}),
            Class::kModelDiffers);
  EXPECT_EQ(ClassOf(kOk, Ran{70, "", "clew: check failed"}), Class::kBroken);
  EXPECT_EQ(ClassOf(kOk, kOk, Ran{0, "line 5: x", ""}), Class::kReplayDiffers);
  EXPECT_EQ(ClassOf(kOk, kOk, Ran{1, "ok\n", ""}), Class::kReplayDiffers);
}

TEST(OutcomeTest, NothingIsSettledBeforeTheLastCommand) {
  EXPECT_FALSE(SettledBy({kOk, kOk, std::nullopt, std::nullopt}));
  EXPECT_FALSE(SettledBy({kOk, kOk, kOk, std::nullopt}));
}

TEST(OutcomeTest, TheEvidenceIsTheLineThatNamesWhatDiffered) {
  const auto outcome = SettledBy(
      {kOk, {1, "line 7: x == 1 (errno 0)\nmore", "clew: failed"}, {}, {}});
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->evidence, "line 7: x == 1 (errno 0)");
}

TEST(OutcomeTest, ClassesHaveNames) {
  for (int i = 0; i < kClasses; ++i) {
    const auto which = static_cast<Class>(i);
    EXPECT_EQ(ClassNamed(NameOf(which)), which);
  }
  EXPECT_FALSE(ClassNamed("perfect"));
}

Result<Table> Read(const std::string& text) {
  std::istringstream in(text);
  return ReadTable(in);
}

TEST(ExpectedTest, RowsAreReadAsWritten) {
  const std::string row = "futex_pi | no answer | QEMU has no PI | since 7.2";
  const auto table = Read("# head\n\n" + row + "\n");
  ASSERT_TRUE(table) << table.error().message;
  ASSERT_EQ(table->size(), 1u);
  const auto& [program, expected] = *table->begin();
  EXPECT_EQ(expected.which, Class::kNoAnswer);
  EXPECT_EQ(RowOf(program, expected), row);
}

TEST(ExpectedTest, RowsOfAnotherFormAreRefusedWithTheirLine) {
  for (const char* row :
       {"x", "x | refused", "x | refused |", "x | perfect | y", "| refused | y",
        "x | same | y", "a | refused | y\na | refused | z"}) {
    const auto table = Read(std::string(row) + "\n");
    ASSERT_FALSE(table) << row;
    EXPECT_EQ(table.error().code, ErrorCode::kCorruptInput);
    EXPECT_THAT(table.error().message, HasSubstr("line "));
  }
}

TEST(ExpectedTest, EachRowIsOfAProgram) {
  for (const char* const name : {"expected_qemu.txt", "expected_step.txt"}) {
    std::ifstream text(std::string(CLEW_FIDELITY "/") + name);
    const auto table = ReadTable(text);
    ASSERT_TRUE(table) << name << ": " << table.error().message;
    for (const auto& [program, expected] : *table) {
      EXPECT_THAT(ProgramNames(), testing::Contains(program)) << name;
    }
  }
}

}  // namespace
}  // namespace clew::fidelity
