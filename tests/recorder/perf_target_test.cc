// Goal: a unit is found by its name wherever its cgroup is, and stands for its
// process where it has one; all else is refused by name.
// Method: folders that look like a cgroup tree, of both layouts.
#include "recorder/perf_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/os/scratch_folder.h"
#include "tests/support/must.h"
#include "tests/support/write_text.h"

namespace clew::recorder {
namespace {

using test::Must;
using test::WriteText;
using testing::ElementsAre;
using testing::HasSubstr;

class PerfTargetTest : public testing::Test {
 protected:
  void AddCgroup(const std::string& folder, const std::string& processes) {
    WriteText(root() + "/" + folder + "/cgroup.procs", processes);
  }
  std::string root() const { return scratch_.path(); }
  std::string Refusal(const std::string& unit) const {
    const auto process = ProcessOfUnit(root(), unit);
    EXPECT_FALSE(process) << unit;
    return process ? "" : process.error().message;
  }

 private:
  const ScratchFolder scratch_ = Must(ScratchFolder::Make("perf-target"));
};

TEST_F(PerfTargetTest, AUnitStandsForItsProcess) {
  AddCgroup("system.slice", "");
  AddCgroup("system.slice/one.service", "4711\n");
  AddCgroup("system.slice/below.service", "");
  AddCgroup("system.slice/below.service/inner", "4712\n");
  EXPECT_EQ(Must(CgroupOfUnit(root(), "one.service")),
            root() + "/system.slice/one.service");
  EXPECT_EQ(Must(ProcessOfUnit(root(), "one.service")), 4711);
  EXPECT_EQ(Must(ProcessOfUnit(root(), "below.service")), 4712);
}

TEST_F(PerfTargetTest, TheUnifiedTreeComesFirst) {
  AddCgroup("unified/system.slice/one.service", "1\n");
  AddCgroup("memory/system.slice/one.service", "2\n");
  EXPECT_EQ(Must(ProcessOfUnit(root(), "one.service")), 1);
}

TEST_F(PerfTargetTest, WithNoneOrSeveralProcessesItIsRefusedWithTheirNumbers) {
  AddCgroup("none.service", "");
  AddCgroup("two.service", "31\n");
  AddCgroup("two.service/inner", "30\n");
  std::string many;
  for (int i = 1; i <= 20; ++i) {
    many += fmt::format("{}\n", i);
  }
  AddCgroup("many.service", many);
  EXPECT_THAT(ProcessesOfCgroup(root() + "/two.service"), ElementsAre(30, 31));
  EXPECT_THAT(Refusal("none.service"), HasSubstr("no process"));
  EXPECT_THAT(Refusal("two.service"), HasSubstr("2 processes (30, 31)"));
  EXPECT_THAT(Refusal("many.service"), HasSubstr("7, 8, ...)"));
  EXPECT_THAT(Refusal("absent.service"), HasSubstr("no unit"));
  EXPECT_THAT(Refusal("../none.service"), HasSubstr("no name of a unit"));
  EXPECT_THAT(Refusal(""), HasSubstr("no name of a unit"));
}

}  // namespace
}  // namespace clew::recorder
