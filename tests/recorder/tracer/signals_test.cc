// Goal: handlers of signals begin and end as natively, whenever a signal comes:
// all registers, flags and vectors, the stack below the red zone, masks and
// frames.
// Method: programs that check themselves, under signals that other threads send
// them at any moment. Oracle: they say the same natively.

#include <gtest/gtest.h>

#include <string>

#include "tests/recorder/tracer/traced_run.h"

namespace clew::tracer {
namespace {

struct Form {
  std::string name;
  int signals = 0;
};

class SignalsTest : public testing::TestWithParam<Form> {};

TEST_P(SignalsTest, ComeAsNatively) {
  const Form& form = GetParam();
  const TracedRun run = ExpectAsNatively(
      {TestProgram("signals"), form.name, std::to_string(form.signals)});
  int handlers = 0;
  for (const ThreadPath& path : run.threads) {
    handlers += static_cast<int>(path.handlers);
  }
  EXPECT_GE(handlers, form.signals);
}

std::string NameOf(const testing::TestParamInfo<Form>& form) {
  return form.param.name;
}

INSTANTIATE_TEST_SUITE_P(
    Some, SignalsTest,
    testing::Values(Form{"registers", 500}, Form{"frame", 500},
                    Form{"nested", 500}, Form{"longjmp", 500},
                    Form{"repair", 500}, Form{"calls", 300},
                    Form{"processes", 500}),
    NameOf);

constexpr int kMany = 100'000;
INSTANTIATE_TEST_SUITE_P(More, SignalsTest,
                         testing::Values(Form{"registers", kMany},
                                         Form{"frame", kMany},
                                         Form{"nested", kMany},
                                         Form{"longjmp", kMany}),
                         NameOf);

}  // namespace
}  // namespace clew::tracer
