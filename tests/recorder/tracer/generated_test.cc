// Goal: whatever form an instruction has, its copy does what it does natively.
// Method: RandomProgram, CompareWithSteps; the seed is printed. Oracle: the
// CPU.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/recorder/tracer/comparison.h"
#include "tests/recorder/tracer/random_code.h"

namespace clew::tracer {
namespace {

namespace fs = std::filesystem;

struct Seeds {
  uint64_t first = 0;
  uint64_t count = 0;
};

class GeneratedCodeTest : public testing::TestWithParam<Seeds> {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(folder_.data()), nullptr); }
  void TearDown() override { fs::remove_all(folder_); }

  std::string folder_ = testing::TempDir() + "clew_generated_XXXXXX";
};

TEST_P(GeneratedCodeTest, RunsAsNatively) {
  ComparedRun all;
  const auto [first, count] = GetParam();
  for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const std::string path = folder_ + "/program";
    const std::vector<uint8_t> program = RandomProgram(seed);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(program.data()),
               static_cast<std::streamsize>(program.size()));
    fs::permissions(path, fs::perms::owner_all);
    const ComparedRun run = CompareWithSteps({path});
    all.insns += run.insns;
    all.records += run.records;
    all.fragments += run.fragments;
  }
  fmt::print("{} programs: {} instructions, {} records, {} fragments\n", count,
             all.insns, all.records, all.fragments);
}

INSTANTIATE_TEST_SUITE_P(Some, GeneratedCodeTest,
                         testing::Values(Seeds{1, 30}));
INSTANTIATE_TEST_SUITE_P(More, GeneratedCodeTest,
                         testing::Values(Seeds{1000, 10'000}));

}  // namespace
}  // namespace clew::tracer
