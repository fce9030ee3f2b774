#include "recorder/bpf/input_recording.h"

#include <utility>

namespace clew::recorder::bpf {

Result<InputRecording> InputRecording::Open(FileSystem& files,
                                            const std::string& path,
                                            const InputLogOptions& log,
                                            InputOptions options) {
  InputRecording recording;
  options.processes = {log.process};
  CLEW_ASSIGN_OR_RETURN(source, KernelInputSource::Open(options));
  recording.source_ = std::move(source);
  CLEW_ASSIGN_OR_RETURN(file, files.Create(path));
  recording.file_ = std::move(file);
  recording.clock_ = std::make_unique<ClockSamples>();
  recording.log_ = std::make_unique<InputLogWriter>(*recording.file_,
                                                    *recording.clock_, log);
  return recording;
}

Status InputRecording::Poll(int timeout_ms) {
  CLEW_RETURN_IF_ERROR(source_->Wait(timeout_ms));
  clock_->Sample();
  return source_->Drain(*log_);
}

Result<InputRecording::Summary> InputRecording::Finish() {
  clock_->Sample();
  CLEW_RETURN_IF_ERROR(source_->Finish(*log_));
  CLEW_RETURN_IF_ERROR(file_->Sync());
  return Summary{.counts = source_->counts(), .log = log_->counts()};
}

}  // namespace clew::recorder::bpf
