#ifndef CLEW_RECORDER_BPF_INPUT_RECORDING_H_
#define CLEW_RECORDER_BPF_INPUT_RECORDING_H_

#include <cstdint>
#include <memory>
#include <string>

#include "common/os/file.h"
#include "common/result.h"
#include "recorder/bpf/clock_samples.h"
#include "recorder/bpf/input_log_writer.h"
#include "recorder/bpf/input_source.h"

namespace clew::recorder::bpf {

// Records inputs.pb of one process: for `clew record --source perf --inputs`.
//
//   auto recording = InputRecording::Open(
//       files, path, {.process = process, .from_exec = true}, {});
//   recording->Start();
//   while (running) { recording->Poll(100); }
//   auto summary = recording->Finish();
//
// Not thread-safe; Poll may be called from a thread of its own.
class InputRecording {
 public:
  // Makes ready, which takes up to a second. `log.process` exists already and
  // waits to go on (or runs). `options` say neither processes nor cgroup.
  // `files` must outlive the object.
  [[nodiscard]] static Result<InputRecording> Open(FileSystem& files,
                                                   const std::string& path,
                                                   const InputLogOptions& log,
                                                   InputOptions options);
  // From when it returns.
  [[nodiscard]] Status Start() { return source_->Start(); }

  // Waits for up to `timeout_ms` for something to come, and writes it. Times
  // are exact to a thousandth of the time between two calls, so call it at
  // least every 100 ms.
  [[nodiscard]] Status Poll(int timeout_ms);

  struct Summary {
    KernelInputCounts counts;  // of children, too
    InputLogCounts log;        // of the process
  };
  // Ends the recording; the file is whole and synced afterwards.
  [[nodiscard]] Result<Summary> Finish();

 private:
  InputRecording() = default;

  std::unique_ptr<ClockSamples> clock_;
  std::unique_ptr<WritableFile> file_;
  std::unique_ptr<InputLogWriter> log_;
  std::unique_ptr<KernelInputSource> source_;
};

}  // namespace clew::recorder::bpf

#endif  // CLEW_RECORDER_BPF_INPUT_RECORDING_H_
