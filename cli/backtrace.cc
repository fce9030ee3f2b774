#include "decoder/backtrace.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "bundle/bundle.h"
#include "cli/backtrace_text.h"
#include "cli/report.h"
#include "cli/subcommands.h"
#include "common/text/hex.h"
#include "common/text/one_line.h"
#include "decoder/failure_signature.h"
#include "transfer/sha256.h"

namespace clew::cli {
namespace {

using bundle::Bundle;
using decoder::Backtrace;
using decoder::BacktraceFrame;
using decoder::ThreadBacktrace;

constexpr const char* kBacktraceFooter =
    R"(The stacks come from the core dump, with the images in the bundle; nothing else
on this host is read. Equal signatures are one group of the collector; what they
are made of is in docs/design/collector.md.

Exit codes:
  0  printed; what is missing for it stands at the end
  4  the bundle breaks its format
  5  the core dump is larger than what is read

Examples:
  clew backtrace fail.clew
  clew backtrace --thread 4711 fail.clew
  clew backtrace --json fail.clew | jq -r .title,.signature
)";

struct BacktraceOptions {
  std::string bundle;
  bool json = false;
  std::optional<int32_t> thread;
  size_t frames_max = decoder::BacktraceLimits().frames_max;
  uint32_t time_limit_s = 20;
};

std::string SignatureOf(const Backtrace& backtrace) {
  const std::string text = decoder::SignatureText(backtrace);
  return ToHex(transfer::Sha256Of(std::as_bytes(std::span(text))));
}

Json ToJson(const ThreadBacktrace& thread) {
  Json frames = Json::array();
  for (const BacktraceFrame& frame : thread.frames) {
    frames.push_back({{"function", frame.function},
                      {"module", frame.module},
                      {"build_id", frame.build_id},
                      {"offset", frame.offset},
                      {"file", frame.file},
                      {"line", frame.line}});
  }
  return {{"thread", thread.thread.as_int()},
          {"failed", thread.failed},
          {"cut_off", thread.cut_off},
          {"frames", std::move(frames)}};
}

// What stands above the stacks; of the whole backtrace.
struct Heading {
  std::string title;
  std::string signature;
};

Json ToJson(const Backtrace& backtrace, const Heading& heading) {
  Json threads = Json::array();
  for (const ThreadBacktrace& thread : backtrace.threads) {
    threads.push_back(ToJson(thread));
  }
  return {{"signature", heading.signature},
          {"signature_rules", kSignatureRules},
          {"title", heading.title},
          {"program", backtrace.program.name},
          {"version", backtrace.program.version},
          {"message", backtrace.message},
          {"threads", std::move(threads)},
          {"notes", backtrace.notes}};
}

void PrintText(const Backtrace& backtrace, const Heading& heading) {
  fmt::print("{}\nsignature {}\n\n{}", Printable(heading.title),
             heading.signature, StacksText(backtrace));
}

Status Choose(const std::string& bundle, int32_t tid, Backtrace& backtrace) {
  std::erase_if(backtrace.threads, [&](const ThreadBacktrace& thread) {
    return thread.thread != Tid(tid);
  });
  if (backtrace.threads.empty()) {
    return InvalidArgument(
        "{}: no thread {} in it; without --thread all are printed", bundle,
        tid);
  }
  return {};
}

Status RunBacktrace(const BacktraceOptions& options) {
  CLEW_ASSIGN_OR_RETURN(bundle, Bundle::Open(options.bundle));
  CLEW_ASSIGN_OR_RETURN(
      backtrace,
      decoder::ReadBacktrace(
          bundle, {.frames_max = options.frames_max,
                   .time_max = std::chrono::seconds(options.time_limit_s)}));
  const Heading heading = {.title = decoder::FailureTitle(backtrace),
                           .signature = SignatureOf(backtrace)};
  if (options.thread) {
    CLEW_RETURN_IF_ERROR(Choose(options.bundle, *options.thread, backtrace));
  }
  if (options.json) {
    PrintJson(ToJson(backtrace, heading));
  } else {
    PrintText(backtrace, heading);
  }
  return {};
}

}  // namespace

void AddBacktrace(Command& app, int& exit_code) {
  auto options = std::make_shared<BacktraceOptions>();
  Command* command = app.add_subcommand(
      "backtrace", "print the call stacks at the failure and its signature");
  command->add_option("bundle", options->bundle, "bundle folder")->required();
  command->add_flag("--json", options->json, "one JSON document");
  command->add_option("--thread", options->thread, "only this thread");
  command
      ->add_option("--frames", options->frames_max, "most frames of a thread")
      ->check(Range(1, 65536))
      ->capture_default_str();
  command
      ->add_option("--time-limit", options->time_limit_s,
                   "seconds after which stacks are cut off")
      ->check(Range(1, 3600))
      ->capture_default_str();
  command->footer(kBacktraceFooter);
  command->callback(
      [=, &exit_code] { exit_code = ReportStatus(RunBacktrace(*options)); });
}

}  // namespace clew::cli
