// Goal: threads and processes that a traced program makes are traced, too: they
// do what they do natively, and the log of each leads from where it begins to
// where it ends.
// Method: programs with threads, vfork, fork and many short threads; their
// output against that of a native run, and the logs against the code.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "tests/recorder/tracer/traced_run.h"

namespace clew::tracer {
namespace {

std::string TestProgram(const std::string& name) {
  return fmt::format("{}/tests/recorder/tracer/clew_tracer_{}",
                     std::getenv("CLEW_BINARY_DIR"), name);
}

TracedRun ExpectAsNatively(const std::vector<std::string>& command) {
  const TracedRun native = RunNatively(command);
  TracedRun traced = RunTraced(command);
  EXPECT_EQ(traced.contradiction, "");
  EXPECT_EQ(traced.status, native.status);
  EXPECT_EQ(traced.output, native.output);
  for (const ThreadPath& path : traced.threads) {
    EXPECT_GT(path.code_bytes, 0) << path.tid;
  }
  return traced;
}

size_t Ended(const TracedRun& run) {
  return static_cast<size_t>(
      std::ranges::count_if(run.threads, &ThreadPath::ended));
}

TEST(TracerThreadsTest, ThreadsRunAtOnce) {
  const TracedRun run = ExpectAsNatively({TestProgram("lives"), "threads"});
  EXPECT_EQ(run.threads.size(), 9);
  EXPECT_EQ(Ended(run), 8);
}

TEST(TracerThreadsTest, MoreThreadsThanSlotsOneAfterAnother) {
  const TracedRun run = ExpectAsNatively({TestProgram("lives"), "many"});
  EXPECT_EQ(run.threads.size(), 5001);
  EXPECT_EQ(Ended(run), 5000);
}

TEST(TracerThreadsTest, ForkedProcessesGoOnByThemselves) {
  const TracedRun run = ExpectAsNatively({TestProgram("lives"), "fork"});
  std::set<int32_t> processes;
  for (const ThreadPath& path : run.threads) {
    processes.insert(path.process);
  }
  EXPECT_EQ(processes.size(), 5);
}

TEST(TracerThreadsTest, VforkedChildrenRunOtherPrograms) {
  const TracedRun run = ExpectAsNatively({TestProgram("lives"), "vfork"});
  EXPECT_GE(run.threads.size(), 2);
}

TEST(TracerThreadsTest, ForkWhileOtherThreadsTranslate) {
  ExpectAsNatively({TestProgram("lives"), "both"});
}

}  // namespace
}  // namespace clew::tracer
