#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include "cli/report.h"
#include "cli/subcommands.h"
#include "common/result.h"

namespace clew::cli {
namespace {

constexpr const char* kAbout =
    "clew records a failing run of a multithreaded program, finds a thread "
    "interleaving that explains it, and replays it under gdb.";

constexpr const char* kMainFooter = R"(Exit codes:
   0  done
   1  a finding: the failure was reproduced, a divergence was seen
   2  usage: the request makes no sense
   3  environment: a tool, permission or file is missing
   4  corrupt input: a bundle breaks its format
   5  a limit was reached without an answer
  70  a bug in clew: of its own, or its model of the kernel or the CPU differs
      from what was recorded

Examples:
  clew doctor
  clew record --until-fail -o fail.clew -- ./server --its-args
  clew import perf.data --core core -o fail.clew
  clew info fail.clew
  clew solve fail.clew
  clew replay fail.clew
  clew replay --check 20 fail.clew

'clew help COMMAND' has the options and examples of each command.
)";

// A table, because the linker drops self-registering objects that nothing else
// refers to. In the order of the help text.
constexpr void (*kSubcommands[])(Command&, int&) = {
    AddRecord,    AddImport,   AddInfo,      AddDecode, AddSolve,
    AddReportBug, AddReplay,   AddBacktrace, AddCheck,  AddUpload,
    AddList,      AddGet,      AddGroup,     AddHosts,  AddDelete,
    AddScrub,     AddSnapshot, AddDaemon,    AddDoctor, AddVersion};

int PrintHelp(const Command& program, const std::string& name) {
  const auto text = name.empty() ? program.Help() : program.HelpOf(name);
  if (!text) {
    return ReportError(
        InvalidArgument("no command {:?}; 'clew help' lists them", name)
            .error());
  }
  fmt::print("{}", *text);
  return kExitOk;
}

void AddHelp(Command& app, int& exit_code) {
  auto name = std::make_shared<std::string>();
  Command* command =
      app.add_subcommand("help", "print this text, or that of a command");
  command->add_option("command", *name, "command to explain");
  command->callback(
      [=, &app, &exit_code] { exit_code = PrintHelp(app, *name); });
}

// gdb's -ex, which CLI11 would take for -e x.
void AcceptGdbSpelling(int argc, char** argv) {
  static char long_form[] = "--ex";
  const bool replay = argc > 1 && std::string_view(argv[1]) == "replay";
  for (int i = 2; replay && i < argc; ++i) {
    if (std::string_view(argv[i]) == "-ex") {
      argv[i] = long_form;
    }
  }
}

int ParseAndRun(Command& app, int argc, char** argv, const int& exit_code) {
  AcceptGdbSpelling(argc, argv);
  if (const auto settled = app.Parse(argc, argv)) {
    return *settled;
  }
  if (!app.HasChosen()) {
    return ReportError(
        InvalidArgument("no command given; 'clew help' lists them").error());
  }
  return exit_code;
}

// A result that could not be written is not a result.
int FlushOutput(int exit_code) {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return ReportError(
        SystemError(errno, "cannot write to standard output").error());
  }
  return exit_code;
}

int Main(int argc, char** argv) {
  int exit_code = kExitOk;
  Command app(kAbout, "clew");
  app.footer(kMainFooter);
  for (const auto add : kSubcommands) {
    add(app, exit_code);
  }
  AddHelp(app, exit_code);
  return FlushOutput(ParseAndRun(app, argc, argv, exit_code));
}

}  // namespace
}  // namespace clew::cli

int main(int argc, char** argv) {
  try {
    return clew::cli::Main(argc, argv);
  } catch (const std::exception& error) {
    // Our own code does not throw: memory ran out, or a library threw.
    std::fprintf(stderr, "clew: bug: %s\n", error.what());
    return clew::kExitBug;
  }
}
