#ifndef CLEW_RECORDER_PROCESS_SCAN_H_
#define CLEW_RECORDER_PROCESS_SCAN_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.h"
#include "recorder/perf_capture.h"

// What runs already, as procfs tells it. `proc` is where that is mounted.

namespace clew::recorder {

// Threads of a process, ascending. kInvalidArgument: there is no such process.
[[nodiscard]] Result<std::vector<int32_t>> ThreadsOf(const std::string& proc,
                                                     int32_t process);
// All processes, ascending.
std::vector<int32_t> AllProcesses(const std::string& proc);

struct ScannedThread {
  int32_t thread = 0;
  std::string name;
};

// A process as it was.
struct ScannedProcess {
  int32_t process = 0;
  int32_t parent = 0;
  std::vector<ScannedThread> threads;
  std::vector<PerfMapping> mappings;  // the executable ones
};

// Looks at processes again and again; a file's build-id is read once. Memory:
// one entry per mapped file. Not thread-safe.
class ProcessScanner {
 public:
  explicit ProcessScanner(std::string proc) : proc_(std::move(proc)) {}

  // A process that is gone is left out; one whose mappings may not be read has
  // none.
  std::vector<ScannedProcess> Scan(const std::vector<int32_t>& processes);

 private:
  struct MapsLine;
  static std::optional<MapsLine> ParseMapsLine(std::string_view line);
  std::vector<uint8_t> BuildIdOf(int32_t process, const MapsLine& line);
  std::vector<PerfMapping> MappingsOf(int32_t process);

  std::string proc_;
  std::map<std::string, std::vector<uint8_t>> build_ids_;
};

// Adds them to `capture`, as perf does it: FORK and COMM for each thread, MMAP2
// with build-id for each mapping.
[[nodiscard]] Status AddProcesses(const std::vector<ScannedProcess>& processes,
                                  PerfCapture& capture);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_PROCESS_SCAN_H_
