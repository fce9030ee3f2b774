// Encodings side by side: size of the formula and time to solve it with Z3, for
// CLAP's, H3's with core order and the same with time, and the default path.
// clap and core do not use the times, as published.
//
//   encodings                   records racey, bbuf, sbuf, pfscan and measures
//   encodings --bundle DIR...   measures these bundles
//   encodings --generated       measures generated instances, no recordings
//   encodings --more            harder generated ones, default path alone
//
// Prints a row as soon as it is measured. Exit code 1: a row could not be
// measured, or the checker refused an answer.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/encodings_generated.h"
#include "bench/encodings_recorded.h"
#include "bench/encodings_table.h"
#include "common/os/scratch_folder.h"

namespace clew::bench {
namespace {

namespace fs = std::filesystem;

Form FormCalled(const std::string& name) {
  return name == "order"    ? Form::kOrder
         : name == "values" ? Form::kValues
                            : Form::kPublished;
}

struct Arguments {
  Settings settings;
  std::vector<std::string> bundles;
  std::string json;
  bool generated = false;
  bool more = false;
};

Status MeasureOwnRecordings(const Settings& settings, Table& table) {
  CLEW_ASSIGN_OR_RETURN(folder, ScratchFolder::Make("clew-bench"));
  CLEW_ASSIGN_OR_RETURN(bundles, RecordPrograms(folder.path(), settings.racey));
  for (const NamedBundle& bundle : bundles) {
    MeasureBundle(bundle, settings, table);
  }
  return {};
}

Status Measure(const Arguments& arguments, Table& table) {
  if (arguments.more) {
    MeasureHarder(arguments.settings, table);
  } else if (arguments.generated) {
    MeasureGenerated(arguments.settings, table);
  } else if (arguments.bundles.empty()) {
    CLEW_RETURN_IF_ERROR(MeasureOwnRecordings(arguments.settings, table));
  }
  for (const std::string& path : arguments.bundles) {
    MeasureBundle({.name = fs::path(path).stem(), .path = path},
                  arguments.settings, table);
  }
  return arguments.json.empty() ? Status() : table.WriteJson(arguments.json);
}

int Run(const Arguments& arguments) {
  Table table;
  const Status status = Measure(arguments, table);
  if (!status) {
    fmt::print(stderr, "encodings: {}\n", status.error().message);
    return ExitCodeOf(status.error().code);
  }
  return table.failed() ? kExitFinding : kExitOk;
}

}  // namespace
}  // namespace clew::bench

int main(int argc, char** argv) {
  CLI::App app("size and solving time of encodings, side by side");
  clew::bench::Arguments arguments;
  clew::bench::Settings& settings = arguments.settings;
  app.add_option("--limit", settings.seconds, "seconds for each row")
      ->capture_default_str();
  app.add_option("--json", arguments.json, "also write the table to this file");
  app.add_option("--racey", settings.racey, "iterations of the racey rows")
      ->capture_default_str();
  app.add_option("--methods", settings.methods, "clap core time default")
      ->check(CLI::IsMember({"clap", "core", "time", "default"}));
  std::string form = "published";
  app.add_option("--form", form,
                 "of recordings' formulas: order (which read sees which "
                 "write), values (and all conditions), published (order for "
                 "racey, else values)")
      ->check(CLI::IsMember({"published", "order", "values"}))
      ->capture_default_str();
  auto* bundles = app.add_option("--bundle", arguments.bundles,
                                 "measure these bundles instead");
  auto* generated = app.add_flag("--generated", arguments.generated,
                                 "measure generated instances instead");
  app.add_flag("--more", arguments.more,
               "measure harder generated ones, by the default path alone")
      ->excludes(bundles)
      ->excludes(generated);
  generated->excludes(bundles);
  CLI11_PARSE(app, argc, argv);
  settings.form = clew::bench::FormCalled(form);
  return clew::bench::Run(arguments);
}
