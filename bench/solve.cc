// What `clew solve` solves, and what it costs: programs whose threads contend,
// recorded until they fail at several timings, and solved by the built program
// as a user would.
//
//   build/bench/bench_solve [--suite contended|cyc|first|long|all]
//                           [--only REGEX] [--seeds N] [--limit SECONDS]
//                           [--keep FOLDER] [--json FILE]
//
// CPU time and memory are those of the solving process and its children. With
// --keep bundles stay in that folder, and are solved again as they are if they
// are there, so that two builds can be compared on the same recordings.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "bench/clew_run.h"
#include "common/os/scratch_folder.h"
#include "common/result.h"
#include "recorder/software/record.h"
#include "recorder/software/until_fail.h"
#include "tests/support/silence.h"

namespace clew::bench {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kTriesMax = 300;

struct Timing {
  const char* name;
  bool packets;
  uint32_t mtc_period;
  bool cyc;
};
constexpr Timing kDefault = {"mtc 6", true, 6, false};
constexpr Timing kCyc = {"cyc", true, 6, true};
constexpr Timing kNone = {"none", false, 0, false};

struct Program {
  const char* name;
  std::vector<std::string> command;  // of tests/programs
  uint32_t threads;                  // with the first one
  bool fails = true;                 // false: any run will do
};

struct Instance {
  Program program;
  Timing timing;
  uint64_t seed = 1;  // the first that is tried
};

const std::vector<Program>& Contended() {
  static const std::vector<Program> kPrograms = {
      {"stack", {"treiber", "60", "4"}, 5},
      {"rwlock", {"rwlock", "24", "2", "4"}, 7},
      {"spin lock", {"spin_lock", "60", "8"}, 9},
      {"queue", {"queue", "20", "8", "8"}, 17},
      {"hot counter", {"ticket", "40", "8"}, 9, false},
      {"late hash 8", {"late_hash", "20", "8", "4"}, 5},
      {"late hash 16", {"late_hash", "20", "16", "4"}, 5},
      {"racey e=1", {"racey_branches", "1500", "1", "4", "0"}, 5, false},
      {"racey e=2", {"racey_branches", "1500", "2", "4", "0"}, 5, false},
      {"racey e=6", {"racey_branches", "1500", "6", "4", "0"}, 5, false}};
  return kPrograms;
}

const std::vector<Program>& First() {
  static const std::vector<Program> kPrograms = {
      {"bank", {"bank"}, 4},       {"bbuf", {"bbuf"}, 5},
      {"sbuf", {"sbuf"}, 3},       {"pfscan", {"pfscan"}, 4},
      {"order", {"order"}, 3},     {"uaf", {"uaf"}, 3},
      {"buffer5", {"buffer5"}, 6}, {"lost wakeup", {"lost_wakeup"}, 3}};
  return kPrograms;
}

const std::vector<Program>& Long() {
  static const std::vector<Program> kPrograms = {
      {"racey 1000", {"racey_branches", "1000", "2", "4", "0"}, 5, false},
      {"racey 10000", {"racey_branches", "10000", "2", "4", "0"}, 5, false},
      {"racey 100000", {"racey_branches", "100000", "2", "4", "0"}, 5, false}};
  return kPrograms;
}

std::vector<Instance> InstancesOf(const std::string& suite, uint64_t seeds) {
  std::vector<Instance> instances;
  const auto add = [&](const char* name, const std::vector<Program>& programs,
                       Timing timing) {
    if (suite != name && suite != "all") {
      return;
    }
    for (const Program& program : programs) {
      for (uint64_t i = 0; i < seeds; ++i) {
        instances.push_back(
            {.program = program, .timing = timing, .seed = 1 + 1000 * i});
      }
    }
  };
  add("contended", Contended(), kDefault);
  add("cyc", Contended(), kCyc);
  add("first", First(), kNone);
  add("long", Long(), {"mtc 0", true, 0, false});
  return instances;
}

Status RecordInstance(const Instance& instance, const std::string& bundle) {
  recorder::RecordOptions options;
  options.command = instance.program.command;
  options.command[0] =
      std::string(CLEW_BENCH_PROGRAMS "/") + options.command[0];
  options.output = bundle;
  options.source = recorder::SoftwareSource::kQemu;
  options.plugin_path = CLEW_BENCH_PLUGIN;
  options.seed = instance.seed;
  options.timing = instance.timing.packets;
  options.mtc_period = instance.timing.mtc_period;
  options.cyc = instance.timing.cyc;
  options.timeout_s = 5;
  const test::Silence silence;
  if (instance.program.fails) {
    CLEW_RETURN_IF_ERROR(
        recorder::RecordUntilFail(options, {.tries_max = kTriesMax}, nullptr));
  } else {
    CLEW_RETURN_IF_ERROR(recorder::Record(options));
  }
  return {};
}

struct Row {
  Instance instance;
  ClewRun solve;
};

Result<Row> RunInstance(const Instance& instance, const std::string& folder,
                        double limit_s) {
  std::string name = fmt::format("{}-{}-{}", instance.program.name,
                                 instance.timing.name, instance.seed);
  std::ranges::replace(name, ' ', '_');
  const std::string bundle = fmt::format("{}/{}.clew", folder, name);
  if (!fs::exists(bundle)) {
    CLEW_RETURN_IF_ERROR(RecordInstance(instance, bundle));
  }
  CLEW_ASSIGN_OR_RETURN(solve, RunClew(CLEW_BENCH_CLEW,
                                       {"solve", "--time-limit",
                                        fmt::format("{}", limit_s), bundle},
                                       folder + "/solved.json"));
  return Row{.instance = instance, .solve = std::move(solve)};
}

nlohmann::json ToJson(const Row& row) {
  const nlohmann::json& solved = row.solve.printed;
  nlohmann::json json = {{"program", row.instance.program.name},
                         {"seed", row.instance.seed},
                         {"threads", row.instance.program.threads},
                         {"timing", row.instance.timing.name},
                         {"model", "sc"},
                         {"cpu_s", row.solve.cpu_s},
                         {"wall_s", row.solve.wall_s},
                         {"rss_mb", row.solve.rss_mb},
                         {"insns", solved.value("instructions", 0)},
                         {"engine", solved.value("engine", "")},
                         {"verdict", solved.value("verdict", "")},
                         {"grade", solved.value("grade", "")}};
  json["A"] = solved.value("ambiguity_bits_per_read", nlohmann::json());
  json["E"] = solved.value("evidence_bits_per_read", nlohmann::json());
  json["clauses"] = solved.value("/constructive/clauses"_json_pointer, 0);
  json["steps"] = solved.value("/window_search/steps"_json_pointer, 0);
  return json;
}

void PrintHeading() {
  fmt::print("{:13} {:6} {:>5} {:>7} {:>9} {:>6} {:>6} {:>8} {:>8} {:>7}  {}\n",
             "program", "timing", "seed", "threads", "insns", "A", "E", "CPU s",
             "wall s", "MB", "answer");
}

std::string Bits(const nlohmann::json& bits) {
  return bits.is_number() ? fmt::format("{:.2f}", bits.get<double>()) : "";
}

void PrintRow(const nlohmann::json& row) {
  fmt::print(
      "{:13} {:6} {:5} {:7} {:9} {:>6} {:>6} {:8.2f} {:8.2f} {:7.0f}  {}\n",
      row["program"].get<std::string>(), row["timing"].get<std::string>(),
      row["seed"].get<uint64_t>(), row["threads"].get<uint32_t>(),
      row["insns"].get<uint64_t>(), Bits(row["A"]), Bits(row["E"]),
      row["cpu_s"].get<double>(), row["wall_s"].get<double>(),
      row["rss_mb"].get<double>(),
      row["verdict"] == "witness"
          ? fmt::format("{}, {}", row["engine"].get<std::string>(),
                        row["grade"].get<std::string>())
          : row["verdict"].get<std::string>());
  std::fflush(stdout);
}

struct Settings {
  std::string suite = "contended";
  std::string only = ".*";
  uint64_t seeds = 1;
  double limit_s = 60;
  std::string keep;
  std::string json;
};

Status RunAll(const Settings& settings) {
  CLEW_ASSIGN_OR_RETURN(scratch, ScratchFolder::Make("bench_solve"));
  const std::string folder =
      settings.keep.empty() ? scratch.path() : settings.keep;
  fs::create_directories(folder);
  const std::regex only(settings.only);
  nlohmann::json rows = nlohmann::json::array();
  size_t solved = 0;
  PrintHeading();
  for (const Instance& instance : InstancesOf(settings.suite, settings.seeds)) {
    if (!std::regex_search(instance.program.name, only)) {
      continue;
    }
    const auto row = RunInstance(instance, folder, settings.limit_s);
    if (!row) {
      fmt::print("{:13} {:6} {:5} error: {}\n", instance.program.name,
                 instance.timing.name, instance.seed, row.error().message);
      continue;
    }
    rows.push_back(ToJson(*row));
    PrintRow(rows.back());
    solved += rows.back()["verdict"] == "witness" ? 1 : 0;
  }
  fmt::print("{} of {} solved, limit {} s\n", solved, rows.size(),
             settings.limit_s);
  return WriteRows(rows, settings.json);
}

int Main(int argc, char** argv) {
  CLI::App app("what clew solve solves, and what it costs");
  Settings settings;
  app.add_option("--suite", settings.suite,
                 "contended, cyc, first, long or all")
      ->capture_default_str();
  app.add_option("--only", settings.only, "programs whose name matches");
  app.add_option("--seeds", settings.seeds, "recordings of each program")
      ->capture_default_str();
  app.add_option("--limit", settings.limit_s, "seconds for each")
      ->capture_default_str();
  app.add_option("--keep", settings.keep, "folder that keeps the bundles");
  app.add_option("--json", settings.json, "write the rows there, too");
  CLI11_PARSE(app, argc, argv);
  if (const Status status = RunAll(settings); !status) {
    fmt::print(stderr, "bench_solve: {}\n", status.error().message);
    return ExitCodeOf(status.error().code);
  }
  return 0;
}

}  // namespace
}  // namespace clew::bench

int main(int argc, char** argv) { return clew::bench::Main(argc, argv); }
