#include "tests/fidelity/run_case.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "tests/e2e/clew_command.h"
#include "tests/support/read_text.h"

namespace clew::fidelity {
namespace {

// Orphans become our children, so that they are found.
void AdoptOrphans() { ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); }

// Of this process, which has one thread.
std::vector<pid_t> Children() {
  const std::string pid = std::to_string(getpid());
  std::istringstream text(
      test::ReadText("/proc/" + pid + "/task/" + pid + "/children"));
  std::vector<pid_t> children;
  for (pid_t child = 0; text >> child;) {
    children.push_back(child);
  }
  return children;
}

// A child of theirs is ours in the next round.
void EndOrphans() {
  for (auto left = Children(); !left.empty(); left = Children()) {
    for (const pid_t child : left) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
}

// A folder for the program's own files, and beside it what a command wrote.
class Folder {
 public:
  Folder() { std::filesystem::create_directory(Work()); }

  std::string Bundle() const { return scratch_.Path("run.clew"); }

  // Standard output goes into a file: an orphan that holds a pipe open would
  // keep us reading.
  Ran Run(const std::vector<std::string>& command, int limit_s) const {
    const std::string out = scratch_.Path("out");
    const std::string err = scratch_.Path("err");
    std::vector<std::string> line = {
        "sh",
        "-c",
        "cd \"$1\" && exec >\"$2\" 2>\"$3\" && shift 3 && exec \"$@\"",
        "sh",
        Work(),
        out,
        err};
    line.insert(line.end(), command.begin(), command.end());
    AdoptOrphans();
    const int status = e2e::Run(line, limit_s).exit_status;
    EndOrphans();
    return {status, test::ReadText(out), test::ReadText(err)};
  }

 private:
  std::string Work() const { return scratch_.Path("work"); }

  e2e::Scratch scratch_;
};

std::string Built(const std::string& program) {
  return e2e::Built("tests/fidelity/programs/" + program);
}

}  // namespace

std::vector<std::string> ProgramNames() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(CLEW_FIDELITY "/programs")) {
    if (entry.path().extension() != ".h") {
      names.push_back(entry.path().stem().string());
    }
  }
  std::ranges::sort(names);
  return names;
}

Ran RunNatively(const std::string& program) {
  return Folder().Run({Built(program)}, e2e::kLimitSeconds);
}

Outcome Follow(const std::vector<std::string>& record_options,
               const std::string& program, const Ran& native, int limit_s) {
  const Folder folder;
  const auto clew = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), e2e::Binary());
    return folder.Run(arguments, limit_s);
  };
  // Of the program's own time: a hang is told, and the recorder ends.
  constexpr const char* kProgramSeconds = "60";
  std::vector<std::string> record = {"record"};
  record.insert(record.end(), record_options.begin(), record_options.end());
  record.insert(record.end(), {"--timeout", kProgramSeconds, "-o",
                               folder.Bundle(), "--", Built(program)});
  Runs runs{
      .native = native, .recorded = clew(record), .solved = {}, .replayed = {}};
  if (const auto outcome = SettledBy(runs)) {
    return *outcome;
  }
  // It says by itself how far it got.
  runs.solved =
      clew({"solve", "--time-limit", std::to_string(std::max(limit_s - 2, 1)),
            folder.Bundle()});
  if (const auto outcome = SettledBy(runs)) {
    return *outcome;
  }
  runs.replayed = clew({"replay", "--once", folder.Bundle()});
  return *SettledBy(runs);
}

}  // namespace clew::fidelity
