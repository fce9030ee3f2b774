#include "recorder/selftest/known_loop.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <optional>

#include "common/os/file.h"
#include "common/os/scratch_folder.h"
#include "decoder/image_search.h"
#include "decoder/perf_trace.h"
#include "decoder/streams.h"
#include "recorder/images/process_scan.h"
#include "recorder/perf_recording.h"

// The known loop: its first instruction has a name, so that it can be found in
// the trace. Once in the program, since a name is.
extern "C" const char clew_selftest_loop[];

namespace clew::recorder {
namespace {

using bundle::PerfData;

constexpr uint64_t kRounds = 10'000;

[[gnu::noinline, gnu::noclone]] void RunLoop(uint64_t rounds) {
  asm volatile(
      ".globl clew_selftest_loop\n"
      "clew_selftest_loop:\n"
      "  dec %0\n"
      "  jnz clew_selftest_loop\n"
      : "+r"(rounds)
      :
      : "cc");
}

int32_t OwnThread() { return static_cast<int32_t>(syscall(SYS_gettid)); }

Status RecordLoop(perf::PerfKernel& kernel, const std::string& sys,
                  const std::string& proc, const std::string& perf_data) {
  perf::PerfSessionOptions options;
  options.threads = {OwnThread()};
  options.pt = perf::PtOptions();
  options.sys = sys;
  options.proc = proc;
  CLEW_ASSIGN_OR_RETURN(recording,
                        PerfRecording::Open(kernel, std::move(options)));
  CLEW_ASSIGN_OR_RETURN(capture,
                        recording.NewCapture(PosixFileSystem(), perf_data));
  CLEW_RETURN_IF_ERROR(recording.session().Enable());
  RunLoop(kRounds);
  CLEW_RETURN_IF_ERROR(recording.session().Disable());
  ProcessScanner scanner(proc);
  CLEW_RETURN_IF_ERROR(AddProcesses(scanner.Scan({getpid()}), capture));
  CLEW_RETURN_IF_ERROR(recording.FinishFull(capture));
  return recording.WriteFile(capture, {"clew", "doctor", "--selftest"});
}

}  // namespace

Result<uint64_t> CountExecutions(const std::string& perf_data, Tid thread,
                                 TraceeAddr ip) {
  CLEW_ASSIGN_OR_RETURN(data, PerfData::Open(perf_data));
  decoder::ImageSearch search;
  decoder::TraceConfig config;
  config.resolve_image = search.Resolver();
  CLEW_ASSIGN_OR_RETURN(trace,
                        decoder::PerfTrace::Load(std::move(data), config));
  CLEW_ASSIGN_OR_RETURN(streams, decoder::TraceStreams::Create(*trace, {}));
  uint64_t count = 0;
  while (true) {
    CLEW_ASSIGN_OR_RETURN(item, streams->Next(thread));
    if (!item) {
      return count;
    }
    if (const auto* gap = std::get_if<Gap>(&*item)) {
      if (gap->cause != GapCause::kCodeMissing) {
        return Unsupported("a gap in the trace: {}", gap->detail);
      }
      continue;
    }
    CLEW_RETURN_IF_ERROR(streams->ForEachInstruction(
        std::get<StreamBlock>(*item), [&](const decoder::WalkedInsn& insn) {
          count += insn.ip == ip ? 1 : 0;
        }));
  }
}

Result<std::string> DecodeKnownLoop(perf::PerfKernel& kernel,
                                    const std::string& sys,
                                    const std::string& proc) {
  CLEW_ASSIGN_OR_RETURN(scratch, ScratchFolder::Make("clew-doctor"));
  const std::string perf_data = scratch.path() + "/perf.data";
  CLEW_RETURN_IF_ERROR(RecordLoop(kernel, sys, proc, perf_data));
  const TraceeAddr loop(reinterpret_cast<uint64_t>(clew_selftest_loop));
  CLEW_ASSIGN_OR_RETURN(rounds,
                        CountExecutions(perf_data, Tid(OwnThread()), loop));
  if (rounds != kRounds) {
    return Unsupported(
        "the loop went round {} times, the decoded trace has {} of them",
        kRounds, rounds);
  }
  return fmt::format("a loop that went round {} times decodes to as many",
                     rounds);
}

}  // namespace clew::recorder
