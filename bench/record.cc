// How much slower a program is when it is recorded: natively, under plain
// qemu-x86_64, and recorded with the defaults, a core dump included. The three
// take turns, round by round, because the host is shared; slow-downs are the
// medians of each round's quotient, of wall time and of CPU time.
//
//   build/bench/bench_record [--rounds N] [--json FILE]

#include "recorder/software/record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/cpu_time.h"
#include "common/result.h"
#include "tests/support/random_lines.h"
#include "tests/support/write_text.h"

extern char** environ;

namespace clew {
namespace {

namespace fs = std::filesystem;
using Command = std::vector<std::string>;

struct Program {
  std::string name;
  Command command;
};

// Round by round.
struct Times {
  std::vector<double> wall_s;
  std::vector<double> cpu_s;
};

struct Row {
  std::string name;
  Times native;
  Times qemu;
  Times recorded;
  recorder::RecordOutcome last;  // of the recorded runs
};

struct Setting {
  std::string folder;  // for input and bundles
  std::string plugin;
  int rounds = 5;
};

// From its making to Stop.
class Stopwatch {
 public:
  void Stop(Times& times) const {
    const auto now = std::chrono::steady_clock::now();
    times.wall_s.push_back(std::chrono::duration<double>(now - wall_).count());
    times.cpu_s.push_back(CpuSeconds() - cpu_);
  }

 private:
  std::chrono::steady_clock::time_point wall_ =
      std::chrono::steady_clock::now();
  double cpu_ = CpuSeconds();
};

// Runs the command; what it prints is dropped.
Status TimeCommand(const Command& command, Times& times) {
  std::vector<char*> argv;
  for (const std::string& word : command) {
    argv.push_back(const_cast<char*>(word.c_str()));
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  const Stopwatch stopwatch;
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (error != 0 || waitpid(child, &status, 0) != child || status != 0) {
    return Unsupported("cannot run {:?}, or it fails", command[0]);
  }
  stopwatch.Stop(times);
  return {};
}

Status TimeRecorded(const Setting& setting, const Program& program, Row& row) {
  recorder::RecordOptions options;
  options.command = program.command;
  options.output = setting.folder + "/run.clew";
  options.source = recorder::SoftwareSource::kQemu;
  options.plugin_path = setting.plugin;
  fs::remove_all(options.output);
  const Stopwatch stopwatch;
  CLEW_ASSIGN_OR_RETURN(recorded, recorder::Record(options));
  stopwatch.Stop(row.recorded);
  if (recorded.failure.exit_status != 0) {
    return Unsupported("{:?} fails when recorded", program.name);
  }
  row.last = recorded;
  return {};
}

Result<Row> Measure(const Setting& setting, const Program& program) {
  Row row;
  row.name = program.name;
  Command under_qemu = program.command;
  under_qemu.insert(under_qemu.begin(), "qemu-x86_64");
  for (int i = 0; i < setting.rounds; ++i) {
    CLEW_RETURN_IF_ERROR(TimeCommand(program.command, row.native));
    CLEW_RETURN_IF_ERROR(TimeCommand(under_qemu, row.qemu));
    CLEW_RETURN_IF_ERROR(TimeRecorded(setting, program, row));
  }
  return row;
}

double Least(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<long>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double MedianQuotient(const std::vector<double>& a,
                      const std::vector<double>& b) {
  std::vector<double> quotients;
  quotients.reserve(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    quotients.push_back(a[i] / b[i]);
  }
  return Median(std::move(quotients));
}

nlohmann::json ToJson(const Times& times, const Times& recorded) {
  return {{"wall_s", times.wall_s},
          {"cpu_s", times.cpu_s},
          {"slowdown_wall", MedianQuotient(recorded.wall_s, times.wall_s)},
          {"slowdown_cpu", MedianQuotient(recorded.cpu_s, times.cpu_s)}};
}

nlohmann::json ToJson(const Row& row) {
  return {{"program", row.name},
          {"instructions", row.last.insns},
          {"turns", row.last.handovers},
          {"pt_bytes", row.last.pt_bytes},
          {"native", ToJson(row.native, row.recorded)},
          {"qemu", ToJson(row.qemu, row.recorded)},
          {"recorded", ToJson(row.recorded, row.recorded)}};
}

void PrintLine(const Row& row, const char* how, const Times& times) {
  fmt::print(
      "{:<13} {:<9} {:>8.3f} {:>8.3f} {:>8.3f} {:>8.3f} {:>8.1f} {:>8.1f}\n",
      row.name, how, Least(times.wall_s), Median(times.wall_s),
      Least(times.cpu_s), Median(times.cpu_s),
      MedianQuotient(times.wall_s, row.native.wall_s),
      MedianQuotient(times.cpu_s, row.native.cpu_s));
}

void PrintRow(const Row& row) {
  PrintLine(row, "native", row.native);
  PrintLine(row, "qemu", row.qemu);
  PrintLine(row, "recorded", row.recorded);
  fmt::print(
      "{:<13} {:.1f} M instructions, {} turns, {:.1f} MB of PT; to plain qemu "
      "{:.1f} wall, {:.1f} CPU\n",
      "", static_cast<double>(row.last.insns) / 1e6, row.last.handovers,
      static_cast<double>(row.last.pt_bytes) / 1e6,
      MedianQuotient(row.recorded.wall_s, row.qemu.wall_s),
      MedianQuotient(row.recorded.cpu_s, row.qemu.cpu_s));
  std::fflush(stdout);
}

Status WriteJson(const std::string& path, const nlohmann::json& json) {
  std::ofstream file(path);
  file << json.dump(2) << '\n';
  file.close();
  return file ? Status() : Unsupported("cannot write {:?}", path);
}

std::vector<Program> Programs(const std::string& input) {
  return {{"pbzip2 -p4",
           {"/usr/bin/pbzip2", "-p4", "-b1", "-1", "-k", "-f", input}},
          {"pigz -p4", {"/usr/bin/pigz", "-p4", "-k", "-f", input}},
          {"compute loop", {CLEW_BENCH_RECORD_GUEST}}};
}

Status Run(const Setting& setting, const std::string& json_path) {
  const std::string input = setting.folder + "/input";
  test::WriteText(input, test::RandomLines(300'000));
  nlohmann::json rows = nlohmann::json::array();
  fmt::print("{} rounds; the last two columns are times native\n",
             setting.rounds);
  fmt::print("{:<13} {:<9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "program",
             "how", "wall min", "median", "CPU min", "median", "wall", "CPU");
  for (const Program& program : Programs(input)) {
    if (!fs::exists(program.command[0])) {
      fmt::print("{:<14} not installed\n", program.name);
      continue;
    }
    CLEW_ASSIGN_OR_RETURN(row, Measure(setting, program));
    PrintRow(row);
    rows.push_back(ToJson(row));
  }
  return json_path.empty() ? Status() : WriteJson(json_path, rows);
}

}  // namespace
}  // namespace clew

int main(int argc, char** argv) {
  CLI::App app("how much slower a program is when it is recorded");
  clew::Setting setting;
  std::string json;
  app.add_option("--rounds", setting.rounds, "default 5")
      ->check(CLI::Range(1, 1000));
  app.add_option("--json", json, "also write the table to this file");
  CLI11_PARSE(app, argc, argv);
  setting.plugin = CLEW_BENCH_PLUGIN;
  std::string folder =
      std::filesystem::temp_directory_path() / "clew-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    fmt::print(stderr, "cannot make {:?}\n", folder);
    return clew::kExitEnvironment;
  }
  setting.folder = folder;
  const clew::Status status = clew::Run(setting, json);
  std::filesystem::remove_all(folder);
  if (!status) {
    fmt::print(stderr, "{}\n", status.error().message);
    return clew::kExitEnvironment;
  }
  return clew::kExitOk;
}
