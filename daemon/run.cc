// clewd-run: puts a unit under software PT.
//
//   ExecStart=/usr/bin/clewd-run %n -- /usr/bin/server --its-args
//
// Becomes `clew record`, which leaves a bundle in clewd's spool if the program
// fails, under a name that says which unit it was. Where that cannot be (no
// spool, no room, no clew), the program runs unrecorded: a service is worth
// more than its trace.
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "common/os/exec_arguments.h"
#include "common/result.h"
#include "daemon/config/config.h"
#include "daemon/config/paths.h"
#include "daemon/loop/clock.h"
#include "daemon/spool/spool.h"

namespace clew::daemon {
namespace {

// Less is left to the system.
constexpr uint64_t kFreeBytesMin = uint64_t{256} << 20;

constexpr const char* kUsage =
    R"(usage: clewd-run [--root DIR] UNIT [OPTION...] -- COMMAND [ARGUMENT...]

Runs COMMAND under software PT; if it fails, clewd gets a bundle. OPTIONs go to
'clew record': --cores N, --quantum N, --fail-on exit!=0, --timeout S, --seed N
(by default another one each time), --size-limit BYTES (software_bytes in
/etc/clew/clewd.conf), --free, --ring BYTES (by default what 'tracer' says in
the section of the unit there). Exit status: as that of 'clew record', 0 the
run did not fail, 1 it failed. $CLEW names the program clew; /usr/bin/clew.

Example, in a drop-in of a unit:
  ExecStart=
  ExecStart=/usr/bin/clewd-run %n -- /usr/bin/server --its-args
)";

struct Plan {
  std::string root = "/";
  std::string unit;
  std::vector<std::string> options;
  std::vector<std::string> command;
};

Result<Plan> Parse(std::vector<std::string> words) {
  Plan plan;
  if (words.size() >= 2 && words[0] == "--root") {
    plan.root = words[1];
    words.erase(words.begin(), words.begin() + 2);
  }
  size_t at = 0;
  for (; at < words.size() && words[at] != "--"; ++at) {
    if (at == 0) {
      plan.unit = words[at];
    } else {
      plan.options.push_back(words[at]);
    }
  }
  for (++at; at < words.size(); ++at) {
    plan.command.push_back(words[at]);
  }
  if (plan.command.empty() || !IsUnitName(plan.unit)) {
    return InvalidArgument("wanted a unit's name, --, and a command");
  }
  return plan;
}

Status CheckSpool(const std::string& folder) {
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return SystemError(errno, fmt::format("cannot write to {:?}", folder));
  }
  struct statvfs info = {};
  if (statvfs(folder.c_str(), &info) == 0 &&
      info.f_bavail * info.f_frsize < kFreeBytesMin) {
    return LimitReached("{:?} is nearly full", folder);
  }
  return {};
}

bool Has(const std::vector<std::string>& options, std::string_view name) {
  return std::ranges::any_of(options, [&](const std::string& option) {
    return option.starts_with(name);
  });
}

std::string RandomSeed() {
  uint32_t seed = 0;
  (void)!getrandom(&seed, sizeof(seed), 0);  // 0 is a seed, too
  return fmt::format("{}", seed);
}

// As the configuration says, what the unit's own options do not. (A file that
// cannot be read is clewd's to complain of.)
std::vector<std::string> ConfiguredOptions(const Plan& plan) {
  const auto read = ReadConfig(Paths(plan.root).config);
  const Config config = read.value_or(Config());
  WatchedUnit unit;
  for (const WatchedUnit& watched : config.units) {
    if (watched.name == plan.unit) {
      unit = watched;
    }
  }
  if (Has(plan.options, "--source") || Has(plan.options, "--free")) {
    unit.tracer = UnitTracer::kTurns;
  }
  std::vector<std::string> options;
  if (unit.tracer != UnitTracer::kTurns) {
    options.emplace_back("--free");
  } else if (!Has(plan.options, "--free") && !Has(plan.options, "--seed")) {
    options.insert(options.end(), {"--seed", RandomSeed()});
  }
  if (unit.tracer == UnitTracer::kRing) {
    options.insert(options.end(),
                   {"--ring", fmt::format("{}", unit.ring_bytes)});
  } else if (!Has(plan.options, "--ring") &&
             !Has(plan.options, "--size-limit")) {
    options.insert(options.end(),
                   {"--size-limit", fmt::format("{}", config.software_bytes)});
  }
  return options;
}

[[noreturn]] void Become(const std::vector<std::string>& words) {
  const std::vector<char*> pointers = ExecArguments(words);
  execvp(pointers[0], pointers.data());
  const int error = errno;
  fmt::print(stderr, "clewd-run: cannot run {:?}: {}\n", words[0],
             std::strerror(error));
  std::exit(error == ENOENT ? 127 : 126);
}

std::vector<std::string> RecordCommand(const Plan& plan,
                                       const std::string& folder) {
  const char* clew = getenv("CLEW");
  const std::string name =
      FormatName({plan.unit, SystemClock().WallNs(), getpid()});
  std::vector<std::string> words = {clew == nullptr ? "/usr/bin/clew" : clew,
                                    "record", "--only-if-failed", "-o",
                                    folder + "/" + name};
  words.insert(words.end(), plan.options.begin(), plan.options.end());
  const std::vector<std::string> configured = ConfiguredOptions(plan);
  words.insert(words.end(), configured.begin(), configured.end());
  words.emplace_back("--");
  words.insert(words.end(), plan.command.begin(), plan.command.end());
  return words;
}

int Main(std::vector<std::string> words) {
  const auto plan = Parse(std::move(words));
  if (!plan) {
    fmt::print(stderr, "clewd-run: {}\n{}", plan.error().message, kUsage);
    return kExitUsage;
  }
  const std::string folder =
      Paths(plan->root).spool + "/" + std::string(FolderOf(Stage::kIncoming));
  auto record = RecordCommand(*plan, folder);
  Status ready = CheckSpool(folder);
  if (ready && access(record[0].c_str(), X_OK) != 0) {
    ready = SystemError(errno, fmt::format("no program {:?}", record[0]));
  }
  if (!ready) {
    fmt::print(stderr, "clewd-run: {}, proceeding anyway without a trace\n",
               ready.error().message);
    Become(plan->command);
  }
  Become(record);
}

}  // namespace
}  // namespace clew::daemon

int main(int argc, char** argv) {
  return clew::daemon::Main({argv + 1, argv + argc});
}
