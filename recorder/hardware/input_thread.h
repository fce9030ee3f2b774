#ifndef CLEW_RECORDER_HARDWARE_INPUT_THREAD_H_
#define CLEW_RECORDER_HARDWARE_INPUT_THREAD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "common/os/file.h"
#include "common/result.h"
#include "recorder/input_tap.h"

namespace clew::recorder {

// Of `clew record --source perf --inputs`.
struct InputsOptions {
  uint64_t ring_bytes = 4 << 20;  // a power of two
  uint64_t bytes_per_second = 64 << 20;
};

struct InputsReport {
  uint64_t calls = 0;  // whole
  // Calls and signals that are not, those that are in no record included.
  uint64_t unknown = 0;
  uint64_t bytes = 0;  // of inputs.pb
  // Of `unknown`, and of what the process did before its execve.
  uint64_t ring_full = 0;
  uint64_t over_rate = 0;
};

class ReportingTap : public InputTap {
 public:
  // After Finish.
  virtual InputsReport report() const = 0;
};

// Writes the file `path`, from Start on in a thread of its own, so that inputs
// do not wait for PT to be written. `files` must outlive it.
//
// kUnsupported: this build has none; the message says what it needs. Start:
// kSystem or kUnsupported where the kernel refuses, saying what would help.
[[nodiscard]] Result<std::unique_ptr<ReportingTap>> MakeInputTap(
    FileSystem& files, const std::string& path, const InputsOptions& options);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_HARDWARE_INPUT_THREAD_H_
