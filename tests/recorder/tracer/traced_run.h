#ifndef CLEW_TESTS_RECORDER_TRACER_TRACED_RUN_H_
#define CLEW_TESTS_RECORDER_TRACER_TRACED_RUN_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/os/ptrace.h"
#include "recorder/tracer/path_reader.h"
#include "recorder/tracer/shared_memory.h"

namespace clew::tracer {

// What the log of a thread was expanded to.
struct ThreadPath {
  int32_t process = 0;
  int32_t tid = 0;
  uint64_t records = 0;
  uint64_t code_bytes = 0;  // that it ran through
  uint64_t handlers = 0;    // of signals, that began
  // It ended by itself, and its log leads to the call that it ended by.
  bool ended = false;
};

struct TracedRun {
  int status = 0;  // as wait(2) has it
  std::string output;
  std::vector<ThreadPath> threads;  // in the order in which they were seen
  std::string contradiction;        // that a log has, or why the runtime ended
  uint32_t forgotten = 0;           // so often all code was
};

// What is done to a program before it is let go: it is stopped at the first
// instruction of the tracer's runtime. Returns the signal that it goes on with.
using Drive = std::function<int(TracedProcess&, const SharedMemory&)>;

// Sees the code that each thread ran, in order.
using SeeCode =
    std::function<void(const ThreadPath&, const recorder::CodeStretch&)>;

// Runs a program in the tracer, which nothing else traces, to its end and to
// that of the processes that it made, in an empty folder, with an environment
// of PATH alone. `fragments_kept` as in SharedHeader.
TracedRun RunTraced(const std::vector<std::string>& command,
                    const Drive& drive = nullptr,
                    const SeeCode& see_code = nullptr,
                    uint32_t fragments_kept = 0);

// The same natively: status and output.
TracedRun RunNatively(const std::vector<std::string>& command);

// Runs it in both ways, and expects the same of both.
TracedRun ExpectAsNatively(const std::vector<std::string>& command,
                           const SeeCode& see_code = nullptr);

// The path of one of `programs`, and of one of ../programs_static.
std::string TestProgram(const std::string& name);
std::string StaticProgram(const std::string& name);

}  // namespace clew::tracer

#endif  // CLEW_TESTS_RECORDER_TRACER_TRACED_RUN_H_
