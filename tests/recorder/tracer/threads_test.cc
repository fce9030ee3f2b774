// Goal: threads and processes that a traced program makes are traced, too: they
// do what they do natively, and the log of each leads from where it begins to
// where it ends.
// Method: programs with threads, vfork, fork and many short threads; their
// output against that of a native run, and the logs against the code.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/recorder/tracer/traced_run.h"

namespace clew::tracer {
namespace {

TracedRun ExpectPathOfEach(const std::string& what) {
  TracedRun run = ExpectAsNatively({TestProgram("lives"), what});
  for (const ThreadPath& path : run.threads) {
    EXPECT_GT(path.code_bytes, 0) << path.tid;
  }
  return run;
}

size_t Ended(const TracedRun& run) {
  return static_cast<size_t>(
      std::ranges::count_if(run.threads, &ThreadPath::ended));
}

TEST(TracerThreadsTest, ThreadsRunAtOnce) {
  const TracedRun run = ExpectPathOfEach("threads");
  EXPECT_EQ(run.threads.size(), 9);
  EXPECT_EQ(Ended(run), 8);
}

TEST(TracerThreadsTest, MoreThreadsThanSlotsOneAfterAnother) {
  const TracedRun run = ExpectPathOfEach("many");
  EXPECT_EQ(run.threads.size(), 5001);
  EXPECT_EQ(Ended(run), 5000);
}

TEST(TracerThreadsTest, DetachedThreadsBeginWhileOthersEnd) {
  const TracedRun run = ExpectAsNatively({TestProgram("lives"), "detached"});
  EXPECT_EQ(run.threads.size(), 1501);
}

TEST(TracerThreadsTest, ForkedProcessesGoOnByThemselves) {
  const TracedRun run = ExpectPathOfEach("fork");
  std::set<int32_t> processes;
  for (const ThreadPath& path : run.threads) {
    processes.insert(path.process);
  }
  EXPECT_EQ(processes.size(), 5);
}

TEST(TracerThreadsTest, VforkedChildrenRunOtherPrograms) {
  const TracedRun run = ExpectPathOfEach("vfork");
  EXPECT_GE(run.threads.size(), 2);
}

TEST(TracerThreadsTest, ForkWhileOtherThreadsTranslate) {
  ExpectPathOfEach("both");
}

TEST(TracerThreadsTest, FlagsThatAskForAlignedOperands) {
  ExpectPathOfEach("aligned");
}

}  // namespace
}  // namespace clew::tracer
