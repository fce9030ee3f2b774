// Goal: what a program may use of the kernel and the CPU, it can use in the
// tracer.
// Method: the programs of tests/fidelity, each of which says by its output and
// status whether its feature works; against a native run.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/recorder/tracer/traced_run.h"

namespace clew::tracer {
namespace {

// Other than natively, and known.
const std::set<std::string>& DifferentPrograms() {
  // GS is the runtime's.
  static const std::set<std::string> programs = {"cpu_segment_base"};
  return programs;
}

// The programs whose names begin with it.
class FeatureTest : public testing::TestWithParam<std::string> {};

TEST_P(FeatureTest, WorksAsNatively) {
  const std::filesystem::path folder =
      fmt::format("{}/tests/fidelity/programs", std::getenv("CLEW_BINARY_DIR"));
  std::vector<std::string> programs;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(GetParam() + "_") &&
        !DifferentPrograms().contains(name)) {
      programs.push_back(entry.path());
    }
  }
  ASSERT_FALSE(programs.empty());
  std::ranges::sort(programs);
  for (const std::string& program : programs) {
    ExpectAsNatively({program});
  }
}

INSTANTIATE_TEST_SUITE_P(Some, FeatureTest,
                         testing::Values("cpu", "jump", "memory", "process",
                                         "shared", "signal"));
INSTANTIATE_TEST_SUITE_P(More, FeatureTest,
                         testing::Values("epoll", "event", "file", "futex",
                                         "message", "pipe", "semaphore",
                                         "socket", "system", "terminal",
                                         "thread", "timer"));

}  // namespace
}  // namespace clew::tracer
