#ifndef CLEW_TESTS_RECORDER_TRACER_COMPARISON_H_
#define CLEW_TESTS_RECORDER_TRACER_COMPARISON_H_

#include <cstdint>
#include <string>
#include <vector>

namespace clew::tracer {

struct ComparedRun {
  uint64_t insns = 0;
  uint64_t records = 0;
  uint64_t fragments = 0;
  uint32_t forgotten = 0;  // so often all code was
};

// Runs a program of one thread twice, as LaunchAnswered starts it: in the
// tracer, which logs all registers with each record, and under ptrace, a step
// at a time. Fails the test where the instructions, their addresses or the
// registers differ. `fragments_kept` as in SharedHeader.
ComparedRun CompareWithSteps(const std::vector<std::string>& command,
                             uint32_t fragments_kept = 0);

}  // namespace clew::tracer

#endif  // CLEW_TESTS_RECORDER_TRACER_COMPARISON_H_
