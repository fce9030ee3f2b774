#ifndef CLEW_TESTS_RECORDER_TRACER_ANSWERED_PROGRAM_H_
#define CLEW_TESTS_RECORDER_TRACER_ANSWERED_PROGRAM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/os/ptrace.h"

namespace clew::tracer {

// Starts a program that does the same each time: at the same addresses, with
// the same random bytes, without a vDSO and rseq. RDTSC and calls for time,
// identity and random bytes raise signals, which Answers answers.
std::optional<TracedProcess> LaunchAnswered(
    const std::vector<std::string>& command);

// Answers a program, the same in each of its runs.
class Answers {
 public:
  // True: the thread was about to get a signal for what this answers, and goes
  // on behind it.
  bool Give(TracedProcess& process, const TraceeStop& stop);

 private:
  bool GiveTime(TracedProcess& process);

  uint64_t ticks_ = 0;
};

}  // namespace clew::tracer

#endif  // CLEW_TESTS_RECORDER_TRACER_ANSWERED_PROGRAM_H_
