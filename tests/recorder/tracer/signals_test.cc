// Goal: handlers of signals begin and end as natively, whenever a signal comes:
// all registers, flags and vectors, the stack below the red zone, masks and
// frames.
// Method: programs that check themselves, under signals that other threads send
// them at any moment. Oracle: they say the same natively.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <string>

#include "common/os/ptrace.h"
#include "recorder/tracer/inject.h"
#include "recorder/tracer/shared_memory.h"
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

// Its end is as natively, not a failure of the recorder.
TEST(SignalAtStartTest, OneThatComesWhileTheRuntimeIsBroughtInIsThePrograms) {
  const std::string program = TestProgram("signals");
  TraceeLaunch launch;
  launch.program = program;
  launch.arguments = {program, "registers", "1"};
  launch.host_cpu = std::nullopt;
  auto shared = SharedMemory::Create();
  ASSERT_TRUE(shared.has_value()) << shared.error().message;
  auto process = TracedProcess::Start(launch);
  ASSERT_TRUE(process.has_value()) << process.error().message;
  ASSERT_EQ(kill(process->process(), SIGTERM), 0);
  const Status injected = Inject(*process, *shared);
  ASSERT_TRUE(injected.has_value()) << injected.error().message;
  const auto mask = process->SignalMask(process->first_thread());
  ASSERT_TRUE(mask.has_value());
  EXPECT_EQ(*mask, 0u) << "as it was";
  ASSERT_TRUE(process->Detach(process->first_thread(), 0).has_value());
  int status = 0;
  ASSERT_EQ(waitpid(process->process(), &status, 0), process->process());
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

constexpr int kMany = 100'000;
INSTANTIATE_TEST_SUITE_P(More, SignalsTest,
                         testing::Values(Form{"registers", kMany},
                                         Form{"frame", kMany},
                                         Form{"nested", kMany},
                                         Form{"longjmp", kMany}),
                         NameOf);

}  // namespace
}  // namespace clew::tracer
