#include "recorder/software/repeat.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "common/os/child_process.h"

namespace clew::recorder {
namespace {

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    environment.emplace_back(*variable);
  }
  return environment;
}

uint64_t OwnStackLimit() {
  rlimit limit = {};
  getrlimit(RLIMIT_STACK, &limit);
  return limit.rlim_cur;
}

SoftwareSource SourceOf(bundle::BundleSource source) {
  switch (source) {
    case bundle::BundleSource::kStepper:
      return SoftwareSource::kStep;
    case bundle::BundleSource::kTracer:
      return SoftwareSource::kTracer;
    default:
      return SoftwareSource::kQemu;
  }
}

}  // namespace

Result<bundle::Surroundings> OwnSurroundings(const std::string& name) {
  CLEW_ASSIGN_OR_RETURN(program, FindProgram(name));
  std::error_code error;
  const std::string folder = std::filesystem::current_path(error).string();
  return bundle::Surroundings{.program = program,
                              .working_directory = folder,
                              .environment = OwnEnvironment(),
                              .stack_limit_bytes = OwnStackLimit()};
}

bundle::RunSettings SettingsOf(const RecordOptions& options) {
  return {.arguments = options.command,
          .surroundings = options.surroundings.value_or(bundle::Surroundings()),
          .psb_period_bytes = options.psb_period_bytes,
          .fail_on = ToString(options.fail_on),
          .timeout_s = options.timeout_s,
          .size_limit_bytes = options.size_limit_bytes};
}

Result<RecordOptions> OptionsToRepeat(const bundle::Manifest& manifest,
                                      const std::string& where) {
  if (!manifest.settings) {
    return Unsupported(
        "{}: it does not carry how the program was started: it was not made by "
        "'clew record' in software, is of a process that was attached to, is "
        "redacted, or older than this",
        where);
  }
  const bundle::RunSettings& settings = *manifest.settings;
  const auto fail_on = ParseFailOn(settings.fail_on);
  if (!fail_on || settings.arguments.empty() ||
      !settings.surroundings.working_directory.starts_with('/')) {
    return CorruptInput(
        "{}: settings have {} arguments, working directory {:?}, fail_on {:?}, "
        "wanted 1 or more, an absolute path, a rule of --fail-on",
        where, settings.arguments.size(),
        settings.surroundings.working_directory, settings.fail_on);
  }
  RecordOptions options;
  options.source = SourceOf(manifest.source);
  options.command = settings.arguments;
  options.surroundings = settings.surroundings;
  options.cores = manifest.core_count;
  options.seed = manifest.seed;
  options.quantum_insns = manifest.quantum_insns;
  options.timing = manifest.timing.tsc;
  options.mtc_period = manifest.timing.mtc_period;
  options.cyc = manifest.timing.cyc;
  options.psb_period_bytes = settings.psb_period_bytes;
  options.fail_on = *fail_on;
  options.timeout_s = settings.timeout_s;
  options.size_limit_bytes = settings.size_limit_bytes;
  return options;
}

bool SameEnd(const Failure& a, const Failure& b) {
  return a.kind == b.kind && a.signal == b.signal &&
         a.exit_status == b.exit_status && a.ip == b.ip && a.addr == b.addr;
}

}  // namespace clew::recorder
