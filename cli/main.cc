#include <fmt/format.h>

#include <CLI/CLI.hpp>
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

constexpr const char* kFooter = R"(Exit codes:
   0  done
   1  a finding: the failure was reproduced, a divergence was seen
   2  usage: the request makes no sense
   3  environment: a tool, permission or file is missing
   4  corrupt input: a bundle breaks its format
   5  a limit was reached without an answer
  70  a bug in clew

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
constexpr void (*kSubcommands[])(CLI::App&, int&) = {
    AddRecord, AddImport,    AddInfo,   AddDecode, AddSolve,
    AddReplay, AddBacktrace, AddCheck,  AddUpload, AddList,
    AddGet,    AddSnapshot,  AddDaemon, AddDoctor, AddVersion};

int PrintHelp(const CLI::App& app, const std::string& name) {
  if (name.empty()) {
    // app.help() would give that of the subcommand chosen, which is "help".
    fmt::print("{}", app.get_formatter()->make_help(
                         &app, "", CLI::AppFormatMode::Normal));
    return kExitOk;
  }
  const auto found = app.get_subcommands(
      [&](const CLI::App* command) { return command->get_name() == name; });
  if (found.empty()) {
    return ReportError(
        InvalidArgument("no command {:?}; 'clew help' lists them", name)
            .error());
  }
  fmt::print("{}", found[0]->help("clew"));
  return kExitOk;
}

void AddHelp(CLI::App& app, int& exit_code) {
  auto name = std::make_shared<std::string>();
  CLI::App* command =
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

// CLI11 reports usage by exceptions; they end here.
int ParseAndRun(CLI::App& app, int argc, char** argv, int& exit_code) {
  AcceptGdbSpelling(argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "clew: {}; see 'clew help'\n", error.what());
    return kExitUsage;
  }
  if (app.get_subcommands().empty()) {
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
  CLI::App app(kAbout, "clew");
  app.require_subcommand(0, 1);  // none: see ParseAndRun
  app.footer(kFooter);
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
    // Nothing of ours throws; memory ran out, or a library did.
    std::fprintf(stderr, "clew: bug: %s\n", error.what());
    return clew::kExitBug;
  }
}
