// Goal: whatever form an instruction has, its copy does what it does natively.
// Method: RandomProgram, CompareWithSteps; the seed is printed. Oracle: the
// CPU.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/recorder/tracer/comparison.h"
#include "tests/recorder/tracer/generated_program.h"

namespace clew::tracer {
namespace {

struct Seeds {
  uint64_t first = 0;
  uint64_t count = 0;
};

class GeneratedCodeTest : public testing::TestWithParam<Seeds> {};

TEST_P(GeneratedCodeTest, RunsAsNatively) {
  const GeneratedProgram program;
  ComparedRun all;
  const auto [first, count] = GetParam();
  for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const ComparedRun run = CompareWithSteps({program.Write(seed)});
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
