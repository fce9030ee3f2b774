#ifndef CLEW_RECORDER_INPUT_TAP_H_
#define CLEW_RECORDER_INPUT_TAP_H_

#include <cstdint>

#include "common/result.h"

namespace clew::recorder {

// What a log of inputs lacks that a tap has made (Manifest.unlogged_inputs).
inline constexpr const char* kNotTapped =
    "its inputs were watched by eBPF, which does not see the time stamps and "
    "numbers of CPUs that it read, nor what other processes wrote";

// Records what comes into one process from outside while perf records where its
// threads go. recorder/hardware/input_thread.h has one with eBPF.
//
//   Open, Start, { Check } ..., Finish
class InputTap {
 public:
  virtual ~InputTap() = default;
  // Makes ready, which takes up to a second: for `process`, which is there;
  // `from_exec`: from its next execve on. `tsc_times`: the recording's times
  // are on the TSC, so those of the inputs can be, too.
  [[nodiscard]] virtual Status Open(int32_t process, bool from_exec,
                                    bool tsc_times) = 0;
  // Records from when it returns.
  [[nodiscard]] virtual Status Start() = 0;
  // What went wrong since, if anything did. Takes no time.
  [[nodiscard]] virtual Status Check() = 0;
  // Ends; how many calls and signals of the process are not known.
  [[nodiscard]] virtual Result<uint64_t> Finish() = 0;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_INPUT_TAP_H_
