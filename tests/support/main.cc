// main of the test programs: GoogleTest's, and --from=<file>, with which only
// the tests of that source file run. The random seed is 1 where neither
// --gtest_random_seed nor GTEST_RANDOM_SEED says another: a run can be
// repeated.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::string_view kFrom = "--from=";

// The tests of `file`, a path's last part, as GoogleTest's filter names them.
std::vector<std::string> TestsOf(std::string_view file) {
  std::vector<std::string> tests;
  const auto& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const auto& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const auto& test = *suite.GetTestInfo(t);
      if (std::filesystem::path(test.file()).filename() == file) {
        tests.push_back(fmt::format("{}.{}", suite.name(), test.name()));
      }
    }
  }
  return tests;
}

}  // namespace

int main(int count, char** words) {
  if (GTEST_FLAG_GET(random_seed) == 0) {
    GTEST_FLAG_SET(random_seed, 1);
  }
  testing::InitGoogleMock(&count, words);
  std::string_view from;
  for (int i = 1; i < count; ++i) {
    if (std::string_view(words[i]).starts_with(kFrom)) {
      from = std::string_view(words[i]).substr(kFrom.size());
    }
  }
  // A filter with tests to run is kept: a death test's child has one.
  const std::string filter = GTEST_FLAG_GET(filter);
  const std::string run = filter.substr(0, filter.find('-'));
  if (!from.empty() && (run.empty() || run == "*")) {
    const std::vector<std::string> tests = TestsOf(from);
    if (tests.empty()) {
      fmt::print(stderr, "{}: no test is from {}\n", words[0], from);
      return 2;
    }
    GTEST_FLAG_SET(filter, fmt::format("{}{}", fmt::join(tests, ":"),
                                       filter.substr(run.size())));
  }
  return RUN_ALL_TESTS();
}
