#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/failure_text.h"
#include "cli/report.h"
#include "cli/run_program.h"
#include "cli/subcommands.h"
#include "common/progress.h"
#include "common/text/shell_quote.h"
#include "follower/bundle/bundle_recording.h"
#include "machine/memory_models.h"
#include "replayer/enforce.h"
#include "replayer/gdb/gdb_server.h"
#include "replayer/gdb/launch_gdb.h"
#include "replayer/process_target.h"
#include "replayer/timeline.h"

namespace clew::cli {
namespace {

using bundle::Bundle;
using bundle::BundleImage;
using replayer::EnforceReport;

constexpr const char* kReplayFooter =
    R"(Without an option, gdb opens on the recorded run: at its end if it failed,
else at its start. Everything works backwards too (reverse-continue,
reverse-stepi). A replay is read-only. 'monitor seek N|start|end' moves in time,
and gdb shows that place as if it had stopped there.

Exit codes:
  0  replayed; with --check: every replay ended as the recording did
  1  a replay diverged, or two replays differ
  2  there is no schedule yet: run 'clew solve' first
  3  gdb cannot be started or failed
  4  the bundle breaks its format
  5  under gdb: more would be held in memory than --tape-items says

Examples:
  clew replay fail.clew
  clew replay --batch -ex bt -ex 'info threads' fail.clew
  clew replay --batch -ex 'watch counter' -ex reverse-continue -ex bt fail.clew
  clew replay --check 20 fail.clew
  clew replay --once fail.clew            its output again, without gdb
  clew replay --listen 0 fail.clew        for a gdb or front end of yours
)";

struct ReplayOptions {
  std::string bundle;
  uint32_t check = 0;
  bool once = false;
  bool json = false;
  bool batch = false;
  bool stdio = false;
  bool quiet = false;
  std::optional<uint16_t> listen;
  std::string at;
  std::string gdb = "gdb";
  std::vector<std::string> commands;
  uint64_t tape_items = follower::TapeLimits().items_max;
};

class StdoutSink final : public replayer::OutputSink {
 public:
  void OnOutput(std::span<const std::byte> bytes) override {
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
  }
};

// The recording is from then on one under the schedule's memory model.
Result<Schedule> ReadSchedule(follower::BundleRecording& opened) {
  const Bundle& bundle = opened.bundle;
  CLEW_ASSIGN_OR_RETURN(schedule, bundle.ReadSchedule());
  if (!schedule) {
    return InvalidArgument(
        "{}: no schedule to replay; 'clew solve {}' finds one", bundle.path(),
        bundle.path());
  }
  opened.recording.model = machine::MemoryModelOf(schedule->model);
  return std::move(*schedule);
}

// --- one replay without gdb

// What two replays must have in common; also what --check compares.
Json OnceJson(const Failure& failure, const Schedule& schedule,
              const EnforceReport& report) {
  return {{"failure", FailureText(failure)},
          {"divergence", report.divergence ? Json(*report.divergence) : Json()},
          {"insns", report.insns},
          {"memory_digest", fmt::format("{:#018x}", report.memory_digest)},
          {"schedule_digest",
           fmt::format("{:#018x}", replayer::StepsDigest(schedule.steps))},
          {"outputs_differing", report.outputs_differing}};
}

// The memory must be the one that solving ended with.
void CompareMemory(const Schedule& schedule, EnforceReport& report) {
  if (!report.divergence && schedule.final_memory_digest != 0 &&
      schedule.final_memory_digest != report.memory_digest) {
    report.divergence = fmt::format(
        "memory at the end has digest {:#x}, the schedule's is {:#x}",
        report.memory_digest, schedule.final_memory_digest);
  }
}

Result<int> RunOnce(const ReplayOptions& options,
                    const follower::BundleRecording& opened,
                    const Schedule& schedule) {
  StdoutSink sink;
  std::optional<TerminalProgress> progress;
  progress.emplace("replay", "insn");
  CLEW_ASSIGN_OR_RETURN(
      report, replayer::Enforce(opened.recording, schedule,
                                options.json ? nullptr : &sink, &*progress));
  progress.reset();
  CompareMemory(schedule, report);
  const Failure& failure = opened.recording.failure;
  if (options.json) {
    PrintJson(OnceJson(failure, schedule, report));
  } else {
    std::fflush(stdout);
    fmt::print(stderr, "clew: replayed {} instructions: {}\n", report.insns,
               report.divergence ? "diverged: " + *report.divergence
                                 : FailureText(failure));
  }
  return report.divergence ? kExitFinding : kExitOk;
}

// --- many replays in fresh processes

struct CheckResult {
  uint32_t replays = 0;
  uint32_t agree = 0;
  Json first;  // what the first one that succeeded showed
  std::vector<std::string> differences;
};

std::string Difference(uint32_t number, const ProgramOutput& output,
                       const Json& shown, const Json& first) {
  if (shown.is_discarded()) {
    return fmt::format("replay {}: no report, exit status {}", number,
                       output.exit_status);
  }
  if (output.exit_status != kExitOk) {
    return fmt::format("replay {}: {}", number, shown.dump());
  }
  return fmt::format("replay {}: {}, the first had {}", number, shown.dump(),
                     first.dump());
}

Result<CheckResult> CheckInFreshProcesses(const ReplayOptions& options) {
  CheckResult result;
  TerminalProgress progress("replay", "replays");
  for (uint32_t i = 1; i <= options.check; ++i) {
    CLEW_ASSIGN_OR_RETURN(
        output, RunProgram({"/proc/self/exe", "replay", "--once", "--json",
                            options.bundle}));
    const Json shown = Json::parse(output.text, nullptr, false);
    ++result.replays;
    const bool good = output.exit_status == kExitOk && !shown.is_discarded();
    if (good && result.first.is_null()) {
      result.first = shown;
    }
    if (good && shown == result.first) {
      ++result.agree;
    } else {
      result.differences.push_back(Difference(i, output, shown, result.first));
    }
    progress.Update(i, options.check);
  }
  return result;
}

Result<int> RunCheck(const ReplayOptions& options) {
  CLEW_ASSIGN_OR_RETURN(result, CheckInFreshProcesses(options));
  if (options.json) {
    PrintJson({{"replays", result.replays},
               {"agree", result.agree},
               {"shown", result.first},
               {"differences", result.differences}});
  } else {
    fmt::print("{} of {} replays agree", result.agree, result.replays);
    if (!result.first.is_null()) {
      fmt::print(": {} after {} instructions, memory {}, schedule {}",
                 result.first.value("failure", ""),
                 result.first.value("insns", uint64_t{0}),
                 result.first.value("memory_digest", ""),
                 result.first.value("schedule_digest", ""));
    }
    fmt::print("\n");
    for (const std::string& difference : result.differences) {
      fmt::print("{}\n", difference);
    }
  }
  return result.agree == result.replays ? kExitOk : kExitFinding;
}

// --- under gdb

Result<std::unique_ptr<replayer::ProcessTarget>> OpenTarget(
    const ReplayOptions& replay, const follower::BundleRecording& opened,
    const Schedule& schedule) {
  replayer::ProcessTargetOptions options;
  options.limits.items_max = replay.tape_items;
  for (const auto& [tid, thread] : opened.trace->threads()) {
    options.names[tid] = thread.name;
  }
  return replayer::ProcessTarget::Open(opened.recording, schedule.steps,
                                       std::move(options));
}

// Runs to the end and shows what the program wrote on the way.
Status GoToEnd(replayer::Timeline& timeline, bool show_output) {
  StdoutSink sink;
  TerminalProgress progress("replay", "insn");
  timeline.set_output(show_output ? &sink : nullptr);
  const auto stop = timeline.RunForward({}, std::nullopt, [&] {
    progress.Update(timeline.position(), timeline.target().end());
    return false;
  });
  timeline.set_output(nullptr);
  std::fflush(stdout);
  return stop ? Status() : std::unexpected(stop.error());
}

Status ServeOnPort(uint16_t port, replayer::Timeline& timeline,
                   replayer::ImageFiles& files) {
  CLEW_ASSIGN_OR_RETURN(listener, replayer::gdb::ListenLoopback(port));
  CLEW_ASSIGN_OR_RETURN(folder, replayer::gdb::GdbFolder::Make(
                                    fmt::format("127.0.0.1:{}", port)));
  fmt::print("port {} of 127.0.0.1; gdb -ix {} -ex clew-connect\n", port,
             ShellQuote(folder.commands()));
  std::fflush(stdout);
  CLEW_ASSIGN_OR_RETURN(connection, replayer::gdb::Accept(listener));
  return replayer::gdb::Serve(connection.get(), connection.get(), timeline,
                              files);
}

Status ServeOnStdio(replayer::Timeline& timeline, replayer::ImageFiles& files) {
  ::signal(SIGPIPE, SIG_IGN);
  return replayer::gdb::Serve(STDIN_FILENO, STDOUT_FILENO, timeline, files);
}

Result<int> RunUnderGdb(const ReplayOptions& options,
                        const follower::BundleRecording& opened,
                        const Schedule& schedule) {
  CLEW_ASSIGN_OR_RETURN(target, OpenTarget(options, opened, schedule));
  replayer::Timeline timeline(*target);
  replayer::ImageFiles files;
  for (const BundleImage& image : opened.bundle.manifest().images) {
    files.Add(image.path, image.file);
  }
  const bool failed = opened.recording.failure.kind != FailureKind::kNone;
  if (options.at.empty() ? failed : options.at == "end") {
    CLEW_RETURN_IF_ERROR(GoToEnd(timeline, !options.stdio));
  }
  if (options.stdio) {
    CLEW_RETURN_IF_ERROR(ServeOnStdio(timeline, files));
    return kExitOk;
  }
  if (options.listen) {
    CLEW_RETURN_IF_ERROR(ServeOnPort(*options.listen, timeline, files));
    return kExitOk;
  }
  CLEW_ASSIGN_OR_RETURN(status,
                        replayer::gdb::RunGdb({.gdb = options.gdb,
                                               .commands = options.commands,
                                               .batch = options.batch,
                                               .quiet = options.quiet},
                                              timeline, files));
  return status == 0 ? kExitOk : kExitEnvironment;
}

Result<int> Replay(const ReplayOptions& options) {
  CLEW_ASSIGN_OR_RETURN(opened, follower::OpenRecording(options.bundle));
  CLEW_ASSIGN_OR_RETURN(schedule, ReadSchedule(*opened));
  if (options.check > 0) {
    return RunCheck(options);
  }
  return options.once ? RunOnce(options, *opened, schedule)
                      : RunUnderGdb(options, *opened, schedule);
}

int RunReplay(const ReplayOptions& options) {
  const auto exit_code = Replay(options);
  return exit_code ? *exit_code : ReportError(exit_code.error());
}

}  // namespace

void AddReplay(Command& app, int& exit_code) {
  auto options = std::make_shared<ReplayOptions>();
  Command* command = app.add_subcommand(
      "replay", "open gdb on the recorded run, or replay and compare");
  command->add_option("bundle", options->bundle, "bundle folder")->required();
  auto* const check =
      command->add_option("--check", options->check,
                          "replay N times in fresh processes and compare");
  check->check(PositiveNumber())->type_name("N");
  auto* const once = command->add_flag(
      "--once", options->once, "replay once, show the program's output");
  once->excludes(check);
  command->add_flag("--json", options->json,
                    "with --check or --once: print JSON");
  command
      ->add_option("--ex", options->commands,
                   "command for gdb (also -ex); may be repeated")
      ->type_name("COMMAND")
      ->allow_extra_args(false);
  command->add_flag("--batch", options->batch,
                    "run the commands in gdb and leave");
  command->add_flag("--quiet", options->quiet,
                    "do not say how the run failed and what to type next");
  command->add_option("--gdb", options->gdb, "the gdb to start");
  command->add_option("--at", options->at, "where to open: start or end")
      ->check(IsMember({"start", "end"}));
  auto* const listen = command->add_option(
      "--listen", options->listen,
      "wait for a gdb on this port of 127.0.0.1 (0: any) instead");
  command
      ->add_flag("--stdio", options->stdio,
                 "serve gdb's 'target remote | clew replay --stdio ...'")
      ->excludes(listen);
  AddTapeItems(*command, options->tape_items);
  command->footer(kReplayFooter);
  command->callback([=, &exit_code] { exit_code = RunReplay(*options); });
}

}  // namespace clew::cli
