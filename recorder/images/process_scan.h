#ifndef CLEW_RECORDER_IMAGES_PROCESS_SCAN_H_
#define CLEW_RECORDER_IMAGES_PROCESS_SCAN_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "common/result.h"
#include "recorder/images/image_file.h"
#include "recorder/images/perf_capture.h"

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
  std::vector<bundle::PerfMapping> mappings;  // the executable ones
};

// Looks at processes again and again; a file's build-id is read once. Memory:
// one entry per mapped file. Work for a process is bounded, whatever it maps:
// its first kFilesMax files are looked at, as ImageFile does, and its mappings
// are told as long as their paths have no more than kPathBytesMax together. Not
// thread-safe.
class ProcessScanner {
 public:
  static constexpr size_t kFilesMax = 1000;
  static constexpr size_t kPathBytesMax = size_t{1} << 20;

  explicit ProcessScanner(std::string proc) : proc_(std::move(proc)) {}

  // A process that is gone is left out; one whose mappings may not be read has
  // none. Into `held`, if given, goes each mapped file that its process may
  // read itself: a program that one may execute and not read stays where it is.
  // One that changes its user meanwhile is trusted with none.
  std::vector<ScannedProcess> Scan(const std::vector<int32_t>& processes,
                                   HeldImages* held = nullptr);

 private:
  struct MapsLine;
  static std::optional<MapsLine> ParseMapsLine(std::string_view line);
  // Of a mapped file: what tells it from others, wherever its path leads.
  using FileKey = std::tuple<std::string, uint64_t, std::string>;
  // Files of one process that are open, and their paths.
  using Opened = std::vector<std::pair<std::string, ImageFile>>;
  std::vector<std::byte> BuildIdOf(int32_t process, const MapsLine& line,
                                   Opened* opened);
  std::vector<bundle::PerfMapping> MappingsOf(int32_t process, Opened* opened);
  void Hold(int32_t process, const FileUser& before, Opened opened,
            HeldImages& held) const;

  std::string proc_;
  std::map<FileKey, std::vector<std::byte>> build_ids_;
};

// Adds them to `capture`, as perf does it: FORK and COMM for each thread, MMAP2
// with build-id for each mapping.
[[nodiscard]] Status AddProcesses(const std::vector<ScannedProcess>& processes,
                                  PerfCapture& capture);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_IMAGES_PROCESS_SCAN_H_
