#ifndef CLEW_RECORDER_BPF_INPUT_LOG_WRITER_H_
#define CLEW_RECORDER_BPF_INPUT_LOG_WRITER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>

#include "common/os/file.h"
#include "common/result.h"
#include "recorder/bpf/clock_samples.h"
#include "recorder/bpf/input_event.h"
#include "recorder/bpf/mapped_file.h"

namespace clew::recorder::bpf {

struct InputLogOptions {
  int32_t process = 0;     // what others do is left out
  bool from_exec = false;  // so is what it does before it calls execve
  // False: no times, since what is recorded beside has another clock.
  bool tsc_times = true;
  // Behind so many bytes everything is unknown: a record for each thread says
  // so, and that many more may be written.
  uint64_t bytes_max = uint64_t{4} << 30;
};

struct InputLogCounts {
  uint64_t calls = 0;    // written whole
  uint64_t signals = 0;  // likewise
  uint64_t unknown = 0;  // calls and signals that are not: Loss.inputs_unknown
  uint64_t bytes = 0;
};

// Writes what happened as inputs.pb (docs/format/bundle.md). Whatever is not
// known whole becomes an Unknown record at its place, never a guess.
//
// Not thread-safe.
class InputLogWriter final : public InputSink {
 public:
  // Both are borrowed and must outlive the log.
  InputLogWriter(WritableFile& file, const ClockSamples& clock,
                 const InputLogOptions& options);

  [[nodiscard]] Status OnCall(const InputCall& call) override;
  [[nodiscard]] Status OnSignal(const InputSignal& signal) override;
  [[nodiscard]] Status OnLoss(const InputLoss& loss) override;
  [[nodiscard]] Status OnThreadEnd(const ThreadName& who) override;

  const InputLogCounts& counts() const { return counts_; }

 private:
  bool Wants(const ThreadName& who) const;
  Status Append(const std::string& record);
  Status AppendUnknown(const ThreadName& who, uint64_t count, Causes causes,
                       const InputCall* call);
  Status AppendPastLimit(const ThreadName& who, uint64_t count);

  WritableFile& file_;
  const ClockSamples* clock_;  // null: no times
  MappedFileReader mapped_files_;
  InputLogOptions options_;
  InputLogCounts counts_;
  bool begun_ = false;
  std::unordered_set<int32_t> past_limit_;  // threads that were told of it
  std::string record_;                      // room for one
};

}  // namespace clew::recorder::bpf

#endif  // CLEW_RECORDER_BPF_INPUT_LOG_WRITER_H_
