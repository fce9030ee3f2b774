#include "cli/bundle_recording.h"

#include "decoder/streams.h"

namespace clew::cli {

Result<std::unique_ptr<BundleRecording>> OpenRecording(
    const std::string& bundle_path) {
  CLEW_ASSIGN_OR_RETURN(bundle, decoder::Bundle::Open(bundle_path));
  auto opened = std::make_unique<BundleRecording>(std::move(bundle));
  CLEW_ASSIGN_OR_RETURN(trace, opened->bundle.ReadTrace());
  opened->trace = std::move(trace);
  CLEW_ASSIGN_OR_RETURN(core, opened->bundle.ReadCore());
  opened->core = std::move(core);
  CLEW_ASSIGN_OR_RETURN(start, opened->bundle.ReadStart());

  process::Recording& recording = opened->recording;
  recording.start = std::move(start);
  recording.failure = opened->bundle.manifest().failure;
  recording.clock_slack_ticks = opened->bundle.manifest().clock_slack_ticks;
  if (opened->core) {
    for (const decoder::CoreSegment& segment : opened->core->segments()) {
      recording.core.push_back({segment.addr.as_int(), segment.bytes});
    }
  }
  const BundleRecording* const held = opened.get();
  recording.open_streams = [held]() -> Result<std::unique_ptr<StreamSource>> {
    CLEW_ASSIGN_OR_RETURN(streams,
                          decoder::TraceStreams::Create(*held->trace, {}));
    return std::move(streams);
  };
  recording.open_inputs = [held] { return held->bundle.OpenInputs(); };
  return opened;
}

}  // namespace clew::cli
