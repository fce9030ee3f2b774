#ifndef CLEW_COLLECTOR_JOBS_CONFINED_CHILD_H_
#define CLEW_COLLECTOR_JOBS_CONFINED_CHILD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"

namespace clew::collector {

// Of each process of a child, but for the first and the last. A hard limit of
// the collector that is lower holds instead.
struct ConfinedChildLimits {
  double wall_s = 60;
  uint64_t cpu_s = 60;                        // of all its threads; at least 1
  uint64_t memory_bytes = uint64_t{1} << 30;  // RLIMIT_DATA: its own
  uint64_t address_bytes = uint64_t{16} << 30;  // RLIMIT_AS: with mapped files
  uint64_t file_bytes = uint64_t{64} << 20;     // of one file that it writes
  uint64_t open_files = 256;
  uint64_t processes = 1024;  // of the collector's user, threads counted
  uint64_t output_bytes = uint64_t{4} << 20;  // standard output
};

struct ConfinedChildRequest {
  std::vector<std::string> arguments;  // [0]: absolute path of the program
  std::string folder;                  // current folder, the only one to write
  ConfinedChildLimits limits;
  bool may_fork = false;  // threads are allowed in any case
  // See ConfinementRequest.
  std::vector<std::string> readable{};
  bool may_connect = false;
  int stop_fd = -1;  // readable: kill it; -1: none
};

enum class ConfinedChildEnd : uint8_t { kExited, kSignal, kLimit, kStopped };

struct ConfinedChildOutcome {
  ConfinedChildEnd end = ConfinedChildEnd::kExited;
  int exit_status = 0;     // kExited
  int signal = 0;          // kSignal
  std::string limit;       // kLimit: its name and value, for people
  std::string output;      // at most limits.output_bytes
  std::string last_error;  // last line on standard error; may be any bytes
  double seconds = 0;
  double cpu_seconds = 0;
};

// Runs a program that may be taken over by what it reads, and waits for its
// end:
//
// - no standard input, no environment but PATH, LC_ALL and TMPDIR (`folder`),
//   no files of the collector, no core dump, low priority;
// - the limits above; when it ends, for whatever reason, every process of its
//   session is killed, and it cannot leave the session;
// - what Confinement says;
// - it dies with the collector.
//
// That memory ran out is concluded from what it said on standard error.
// kSystem: it could not be started, or not be waited for. Thread-safe.
[[nodiscard]] Result<ConfinedChildOutcome> RunConfinedChild(
    const ConfinedChildRequest& request);

}  // namespace clew::collector

#endif  // CLEW_COLLECTOR_JOBS_CONFINED_CHILD_H_
