#ifndef CLEW_TESTS_RECORDER_TRACER_TRACED_RUN_H_
#define CLEW_TESTS_RECORDER_TRACER_TRACED_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

namespace clew::tracer {

// What the log of a thread was expanded to.
struct ThreadPath {
  int32_t process = 0;
  int32_t tid = 0;
  uint64_t records = 0;
  uint64_t code_bytes = 0;  // that it ran through
  // It ended by itself, and its log leads to the call that it ended by.
  bool ended = false;
};

struct TracedRun {
  int status = 0;  // as wait(2) has it
  std::string output;
  std::vector<ThreadPath> threads;  // in the order in which they were seen
  std::string contradiction;        // that a log has, or why the runtime ended
};

// Runs a program in the tracer, which nothing else traces, to its end and to
// that of the processes that it made. Empty environment but for PATH.
TracedRun RunTraced(const std::vector<std::string>& command);

// The same natively: status and output.
TracedRun RunNatively(const std::vector<std::string>& command);

}  // namespace clew::tracer

#endif  // CLEW_TESTS_RECORDER_TRACER_TRACED_RUN_H_
