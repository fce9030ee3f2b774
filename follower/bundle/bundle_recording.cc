#include "follower/bundle/bundle_recording.h"

#include <unistd.h>

#include "common/os/file.h"
#include "decoder/bundle_trace.h"
#include "decoder/code_file.h"
#include "decoder/streams.h"

namespace clew::follower {
namespace {

using bundle::Bundle;
using bundle::BundleImage;
using bundle::BundleSource;
using bundle::CoreDump;
using bundle::DumpSegment;
using bundle::DumpThread;
using bundle::Manifest;

// Of a bundle without a start state: what more stands in the way.
Status CheckIs64Bit(const Bundle& bundle) {
  for (const BundleImage& image : bundle.manifest().images) {
    const auto file = MappedFile::Open(image.file);
    if (file && decoder::Is32Bit(file->bytes())) {
      return Unsupported(
          "{}: {:?} is 32-bit code, which is not solved and not replayed; "
          "`clew info`, `clew decode` and `clew check` read it",
          bundle.path(), image.path);
    }
  }
  return {};
}

Status CheckHasRun(const Bundle& bundle) {
  const bool has_start =
      access((bundle.path() + "/start.pb").c_str(), F_OK) == 0;
  if (!has_start) {
    CLEW_RETURN_IF_ERROR(CheckIs64Bit(bundle));
  }
  if (bundle.manifest().source == BundleSource::kImported && !has_start) {
    return Unsupported(
        "{}: was imported from perf.data alone: it lacks the state at its "
        "first instruction (start.pb) and what came in from outside "
        "(inputs.pb), so it cannot be solved or replayed; `clew info` and "
        "`clew decode` read it; import it with --start and --inputs if its "
        "recorder wrote both, as `clew record` does",
        bundle.path());
  }
  if (bundle.manifest().source == BundleSource::kPerf && !has_start) {
    return Unsupported(
        "{}: was recorded in hardware: it lacks the state at its first "
        "instruction (start.pb), so it cannot be solved or replayed; `clew "
        "info`, `clew decode` and `clew backtrace` read it, and what `clew "
        "record --source qemu` makes can be solved",
        bundle.path());
  }
  return {};
}

bool LostNothing(const Manifest& manifest) {
  return manifest.lost_aux_bytes == 0 && manifest.lost_records == 0;
}

std::vector<DumpedRegisters> RegistersOf(const CoreDump& dump,
                                         const Manifest& manifest) {
  std::vector<DumpedRegisters> registers;
  for (const DumpThread& thread : dump.threads()) {
    if (manifest.core_registers_exact ||
        thread.thread == manifest.failure.thread) {
      registers.push_back({.thread = thread.thread,
                           .gpr = thread.gpr,
                           .rip = thread.rip.as_int(),
                           .fs_base = thread.fs_base});
    }
  }
  return registers;
}

}  // namespace

Result<std::unique_ptr<BundleRecording>> OpenRecording(
    const std::string& bundle_path) {
  CLEW_ASSIGN_OR_RETURN(bundle, Bundle::Open(bundle_path));
  CLEW_RETURN_IF_ERROR(CheckHasRun(bundle));
  auto opened = std::make_unique<BundleRecording>(std::move(bundle));
  CLEW_ASSIGN_OR_RETURN(trace, decoder::ReadTrace(opened->bundle));
  opened->trace = std::move(trace);
  CLEW_ASSIGN_OR_RETURN(core, opened->bundle.ReadCore());
  opened->core = std::move(core);
  CLEW_ASSIGN_OR_RETURN(start, opened->bundle.ReadStart());

  Recording& recording = opened->recording;
  recording.start = std::move(start);
  recording.failure = opened->bundle.manifest().failure;
  recording.clock_slack_ticks = opened->bundle.manifest().clock_slack_ticks;
  recording.ran_at_once = RanAtOnce(opened->bundle.manifest().source);
  recording.whole = LostNothing(opened->bundle.manifest());
  recording.unlogged_inputs = opened->bundle.manifest().unlogged_inputs;
  if (const uint64_t unknown = opened->bundle.manifest().inputs_unknown) {
    recording.unlogged_inputs.push_back(fmt::format(
        "{} system calls or signals were not recorded whole", unknown));
  }
  if (const auto& dump = opened->core) {
    recording.dumped_registers = RegistersOf(*dump, opened->bundle.manifest());
    for (const DumpSegment& segment : dump->segments()) {
      recording.core_dump.push_back({segment.addr.as_int(), segment.bytes});
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

}  // namespace clew::follower
