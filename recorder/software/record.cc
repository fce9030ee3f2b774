#include "recorder/software/record.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "bundle/manifest/bundle_writer.h"
#include "common/os/file.h"
#include "common/os/process_state.h"
#include "common/text/path_names.h"
#include "common/text/signal_text.h"
#include "recorder/native/run_natively.h"
#include "recorder/qemu/plugin_config.h"
#include "recorder/software/assemble.h"
#include "recorder/software/child_recorders.h"
#include "recorder/software/launch.h"
#include "recorder/software/raw_events.h"
#include "recorder/software/repeat.h"
#include "recorder/tracer/free/free_run.h"
#include "recorder/tracer/leaps.h"

namespace clew::recorder {
namespace {

using bundle::BundleWriter;

constexpr uint32_t kCoresMax = 64;
constexpr uint32_t kQuantumMax = 1'000'000;
// A manifest has to have room for them.
constexpr size_t kCommandBytesMax = 64 << 10;
// With a crystal of 1/64 of the TSC an MTC period of 2^6 is 4096 instructions.
constexpr uint32_t kTscTicksPerCrystalTick = 64;
constexpr uint32_t kMtcPeriodUnderQemu = 6;
constexpr uint32_t kMtcPeriodByStep = 3;
// Below that of the bundle that is being made.
constexpr const char* kChildrenFolder = "children";

template <class T>
Status CheckRange(const char* name, T value, T least, T most) {
  if (value < least || value > most) {
    return InvalidArgument("{} is {}, must be {} to {}", name, value, least,
                           most);
  }
  return {};
}

Status CheckOptions(const RecordOptions& options) {
  if (options.command.empty() && options.process == 0) {
    return InvalidArgument("no command to record");
  }
  CLEW_RETURN_IF_ERROR(CheckRange("cores", options.cores, 1u, kCoresMax));
  return CheckRange("quantum", options.quantum_insns, 1u, kQuantumMax);
}

Result<PluginConfig> MakeSession(const RecordOptions& options,
                                 const std::string& folder) {
  PluginConfig config;
  config.folder = folder;
  config.scheduler.cores = options.is_free ? 1 : options.cores;
  config.scheduler.quantum_insns = options.quantum_insns;
  config.scheduler.seed = options.seed;
  config.encoder.psb_period_bytes = options.psb_period_bytes;
  config.encoder.time_at_sync = options.is_free;
  config.encoder.tsc = options.timing;
  config.encoder.mtc = options.timing && !options.is_free;
  config.encoder.cyc = options.cyc && options.timing;
  config.encoder.mtc_period = options.mtc_period.value_or(
      options.source == SoftwareSource::kQemu ? kMtcPeriodUnderQemu
                                              : kMtcPeriodByStep);
  config.encoder.tsc_ctc_numerator = kTscTicksPerCrystalTick;
  config.encoder.tsc_ctc_denominator = 1;
  config.size_limit_bytes = options.size_limit_bytes;
  config.timeout_s = options.timeout_s;
  config.fail_on = options.fail_on;
  config.core_on_exit = options.core_on_exit && !options.keep_only_if_failed;
  config.strict = options.strict;
  config.turns_path = options.turns_path;
  CLEW_RETURN_IF_ERROR(Validate(config.encoder));
  return config;
}

// The program's own deaths are recorded, whoever sent the signal; so one that
// is not, by a signal that reports a fault, is QEMU's.
bool IsCrash(int signal) {
  return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL ||
         signal == SIGFPE || signal == SIGTRAP || signal == SIGABRT;
}

std::string HowQemuEnded(int status) {
  if (WIFSIGNALED(status) && IsCrash(WTERMSIG(status))) {
    return fmt::format("qemu-x86_64 itself crashed by {}, not the program",
                       SignalText(WTERMSIG(status)));
  }
  if (WIFSIGNALED(status)) {
    return SignalText(WTERMSIG(status)) + " from outside ended the program";
  }
  return fmt::format(
      "qemu-x86_64 ended with status {} before the recording was complete",
      WEXITSTATUS(status));
}

Status CheckFolder(const PluginConfig& config) {
  return Exists(RawFolder(config.folder))
             ? Status()
             : Unsupported(
                   "{:?} was removed while the program ran; no bundle was made",
                   config.folder);
}

Result<Outcome> ReadOutcome(const PluginConfig& config, int wait_status) {
  CLEW_RETURN_IF_ERROR(CheckFolder(config));
  const auto text = ReadWholeText(OutcomePath(config.folder));
  if (!text || text->empty()) {
    return Unsupported("{}; no bundle was made", HowQemuEnded(wait_status));
  }
  CLEW_ASSIGN_OR_RETURN(outcome, ParseOutcome(*text));
  if (!outcome.refusal.empty()) {
    return Unsupported("{}", outcome.refusal);
  }
  return outcome;
}

// By the recorder: nobody else ends what the program started.
bool WasCutOff(const Failure& failure) {
  return failure.kind == FailureKind::kHang ||
         failure.kind == FailureKind::kTimeLimit;
}

std::string PlaceOf(TraceeAddr ip, const std::vector<RawEvent>& mappings) {
  for (const RawEvent& mapping : mappings) {
    const uint64_t offset = ip.as_int() - mapping.addr;
    if (offset < mapping.size_bytes) {
      return fmt::format("{}+{:#x}", BaseName(mapping.text),
                         mapping.file_offset + offset);
    }
  }
  return {};
}

Result<std::vector<UnknownInsn>> FindUnknownInsns(const RecordOptions& options,
                                                  const std::string& folder) {
  std::vector<UnknownInsn> unknown;
  CLEW_ASSIGN_OR_RETURN(code, ReadCodeList(CodeListPath(folder)));
  for (CodeInsn& insn : code) {
    if (options.can_replay && !options.can_replay(insn.bytes)) {
      unknown.push_back({.insn = std::move(insn), .place = {}});
    }
  }
  std::vector<RawEvent> mappings;
  CLEW_RETURN_IF_ERROR(
      ForEachRawEvent(RawEventsPath(folder), [&](const RawEvent& event) {
        if (event.kind == RawEvent::Kind::kMmap) {
          mappings.push_back(event);
        }
        return Status();
      }));
  for (UnknownInsn& found : unknown) {
    found.place = PlaceOf(found.insn.ip, mappings);
  }
  std::ranges::sort(unknown, {}, [](const auto& u) { return u.insn.ip; });
  return unknown;
}

uint64_t NowMs() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(
          std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

// A tap of inputs, which may be none.
class Inputs {
 public:
  // Null: none.
  explicit Inputs(std::unique_ptr<InputTap> tap) : tap_(std::move(tap)) {}

  bool are_tapped() const { return tap_ != nullptr; }
  Status Open(pid_t process) const {
    return tap_ == nullptr ? Status() : tap_->Open(process, false, false);
  }
  Status Start() const { return tap_ == nullptr ? Status() : tap_->Start(); }
  // Again: does nothing.
  Status Finish() {
    if (tap_ == nullptr || unknown_) {
      return {};
    }
    CLEW_RETURN_IF_ERROR(tap_->Check());
    CLEW_ASSIGN_OR_RETURN(unknown, tap_->Finish());
    unknown_ = unknown;
    return {};
  }
  // Calls and signals that are not known whole, once they are finished.
  uint64_t unknown() const { return unknown_.value_or(0); }

 private:
  std::unique_ptr<InputTap> tap_;
  std::optional<uint64_t> unknown_;
};

// What is left behind by what was recorded.
struct Ran {
  Outcome outcome;
  std::vector<pid_t> left;
  uint64_t stopped_ms = 0;
  // Of the last program that it ran; empty: it runs none but the first.
  std::vector<std::string> executed = {};
};

// Null: each instruction is stepped.
LeapsMaker LeapsFor(const RecordOptions& options) {
  if (options.source != SoftwareSource::kTracer) {
    return nullptr;
  }
  return [](TracedProcess& process) { return tracer::MakeLeaps(process, 0); };
}

// Null: one thread runs at a time.
RunMaker RunFor(const RecordOptions& options) {
  if (!options.is_free) {
    return nullptr;
  }
  return [ring_bytes = options.ring_bytes](NativeState& state,
                                           NativeProgram& program) {
    return tracer::MakeFreeRun(state, program, ring_bytes);
  };
}

// Null: they go on.
ChildTaker TakerOf(ChildRecorders* children) {
  if (children == nullptr) {
    return nullptr;
  }
  return [children](TracedProcess& process, Tid child) {
    return children->Take(process, child);
  };
}

NativeHow How(const RecordOptions& options, const PluginConfig& config,
              const Inputs& inputs, ChildRecorders* children,
              MappedFiles& files) {
  return {.config = config,
          .inputs_are_tapped = inputs.are_tapped(),
          .before_insn = options.before_insn,
          .make_leaps = LeapsFor(options),
          .make_run = RunFor(options),
          .take_child = TakerOf(children),
          .files = &files};
}

Result<Ran> Attach(const RecordOptions& options, const PluginConfig& config,
                   Inputs& inputs, ChildRecorders* children,
                   MappedFiles& files) {
  Ran ran;
  CLEW_RETURN_IF_ERROR(inputs.Open(options.process));
  const uint64_t before_ms = NowMs();
  CLEW_ASSIGN_OR_RETURN(
      wait_status,
      RunAttached(
          {.how = How(options, config, inputs, children, files),
           .process = options.process,
           .handed_over = options.handed_over,
           .is_over = options.is_over,
           .stopped = [&] { return inputs.Start(); },
           .begun = [&] { ran.stopped_ms = NowMs() - before_ms; },
           .ended = [&] { return inputs.Finish(); },
           .executed =
               [&](const auto& arguments) { ran.executed = arguments; }}));
  CLEW_ASSIGN_OR_RETURN(outcome, ReadOutcome(config, wait_status));
  ran.outcome = std::move(outcome);
  return ran;
}

// Returns the wait status.
Result<int> RunCommand(const RecordOptions& options, const PluginConfig& config,
                       ProgramGroup& group, const Inputs& inputs,
                       ChildRecorders* children, MappedFiles& files) {
  const bundle::Surroundings surroundings =
      options.surroundings.value_or(bundle::Surroundings());
  if (options.source != SoftwareSource::kQemu) {
    return RunNatively({.how = How(options, config, inputs, children, files),
                        .command = options.command,
                        .surroundings = surroundings,
                        .enter_group = [&] { group.EnterInChild(); },
                        .started = [&](pid_t pid) -> Status {
                          group.Add(pid);
                          CLEW_RETURN_IF_ERROR(inputs.Open(pid));
                          return inputs.Start();
                        },
                        .on_stop = [&](int signal) { group.OnStop(signal); }});
  }
  return RunUnderQemu({.command = options.command,
                       .surroundings = surroundings,
                       .plugin = options.plugin_path,
                       .config = config},
                      group);
}

Result<Ran> Launch(const RecordOptions& options, const PluginConfig& config,
                   const Inputs& inputs, ChildRecorders* children,
                   MappedFiles& files) {
  CLEW_ASSIGN_OR_RETURN(group, ProgramGroup::Make());
  const auto ran = RunCommand(options, config, group, inputs, children, files);
  if (!ran) {
    CLEW_RETURN_IF_ERROR(CheckFolder(config));  // else that is why
    return std::unexpected(ran.error());
  }
  std::vector<pid_t> left = group.Left();
  const auto outcome = ReadOutcome(config, *ran);
  if (!outcome || WasCutOff(outcome->failure)) {
    group.End();
    left.clear();
  }
  if (!outcome) {
    return std::unexpected(outcome.error());
  }
  return Ran{.outcome = *outcome, .left = std::move(left)};
}

Result<Ran> Run(const RecordOptions& options, const PluginConfig& config,
                ChildRecorders* children, MappedFiles& files) {
  std::unique_ptr<InputTap> tap;
  if (options.make_tap) {
    CLEW_ASSIGN_OR_RETURN(
        made, options.make_tap(PosixFileSystem(), InputsPath(config.folder)));
    tap = std::move(made);
  }
  Inputs inputs(std::move(tap));
  CLEW_ASSIGN_OR_RETURN(ran,
                        options.process != 0
                            ? Attach(options, config, inputs, children, files)
                            : Launch(options, config, inputs, children, files));
  if (inputs.are_tapped()) {
    CLEW_RETURN_IF_ERROR(inputs.Finish());
    ran.outcome.inputs_unknown = inputs.unknown();
    ran.outcome.unlogged_inputs.emplace_back(kNotTapped);
  }
  return ran;
}

}  // namespace

Result<RecordOutcome> Record(const RecordOptions& given) {
  CLEW_RETURN_IF_ERROR(CheckOptions(given));
  RecordOptions options = given;
  if (options.process != 0) {  // its parent's, of one that was just made
    options.command = CommandLineOf(fmt::format("/proc/{}", options.process),
                                    kCommandBytesMax);
  } else {
    if (!options.surroundings) {
      CLEW_ASSIGN_OR_RETURN(own, OwnSurroundings(options.command[0]));
      options.surroundings = own;
    }
    CLEW_RETURN_IF_ERROR(CheckProgram(*options.surroundings));
  }
  CLEW_ASSIGN_OR_RETURN(
      bundle, BundleWriter::Create(PosixFileSystem(), options.output));
  CLEW_ASSIGN_OR_RETURN(config, MakeSession(options, bundle.folder()));
  CLEW_RETURN_IF_ERROR(
      bundle.files().CreateDirectory(RawFolder(bundle.folder())));
  MappedFiles files;
  std::optional<ChildRecorders> children;
  if (options.with_children) {
    children.emplace(options, bundle.folder() + "/" + kChildrenFolder,
                     [&] { files.Clear(); });
  }
  CLEW_ASSIGN_OR_RETURN(
      ran, Run(options, config, children ? &*children : nullptr, files));
  const Outcome& outcome = ran.outcome;
  if (!ran.executed.empty()) {
    options.command = ran.executed;
  }
  if (outcome.cores != 0) {
    config.scheduler.cores = outcome.cores;
  }

  RecordOutcome result{.failure = outcome.failure,
                       .dropped = outcome.dropped,
                       .insns = outcome.insns,
                       .handovers = outcome.handovers,
                       .switches = outcome.switches,
                       .ring = outcome.ring,
                       .seed = options.seed,
                       .stopped_ms = ran.stopped_ms,
                       .inputs_unknown = outcome.inputs_unknown,
                       .deviations = outcome.deviations,
                       .unknown_insns = {},
                       .left = std::move(ran.left),
                       .ended_ns = outcome.ended_ns};
  const bool has_failed = options.handed_over
                              ? IsFailureOfChild(result.failure)
                              : result.failure.kind != FailureKind::kNone;
  if (children) {
    const ChildRecorders::Children all = children->Collect();
    result.unrecorded = all.unrecorded;
    if (const ChildRecorders::Failed* const failed =
            ChooseFailure(result, all.failed, options.fail_on)) {
      RecordOutcome of_child = failed->run;
      of_child.unrecorded = all.unrecorded;
      CLEW_RETURN_IF_ERROR(bundle.PublishInner(
          fmt::format("{}/{}", kChildrenFolder, BundleOfChild(failed->child))));
      return of_child;
    }
    std::error_code error;
    std::filesystem::remove_all(bundle.folder() + "/" + kChildrenFolder, error);
  }
  result.kept = !options.keep_only_if_failed || has_failed;
  if (!result.kept) {
    return result;
  }
  CLEW_ASSIGN_OR_RETURN(unknown, FindUnknownInsns(options, bundle.folder()));
  result.unknown_insns = std::move(unknown);
  if (options.handed_over) {
    result.process = options.process;
    result.child = fmt::format("{}", fmt::join(options.command, " "));
  }
  CLEW_ASSIGN_OR_RETURN(pt_bytes,
                        Assemble(bundle, options, config, outcome, files));
  result.pt_bytes = pt_bytes;
  CLEW_RETURN_IF_ERROR(bundle.Publish());
  return result;
}

}  // namespace clew::recorder
