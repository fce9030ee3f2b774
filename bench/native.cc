// Recordings of the program on this CPU, by step or by the tracer: what they
// cost, and what becomes of those that attach to a process under load. Each
// recording is solved, and its schedule replayed, by the built program as a
// user would.
//
//   build/bench/bench_native [--suite attach|real|cost|fail|all] [--only REGEX]
//                            [--times N] [--seconds S] [--replays N]
//                            [--seed N] [--keep FOLDER] [--json FILE]
//                            [--source step|tracer]
//
//   attach  two programs at random moments: stop, size, answer
//   real    servers and tools of Debian, those that are installed
//   cost    launched programs: native = 1, in turns
//   fail    launched with one seed after the other until they fail

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "bench/clew_run.h"
#include "bench/native_load.h"
#include "bench/native_subjects.h"
#include "common/digest.h"
#include "common/os/child_process.h"
#include "common/os/fd.h"
#include "common/os/scratch_folder.h"
#include "common/result.h"
#include "recorder/software/record.h"
#include "recorder/software/until_fail.h"
#include "tests/support/random_lines.h"
#include "tests/support/silence.h"
#include "tests/support/write_text.h"

namespace clew::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr size_t kInputBytes = 64u << 20;
constexpr uint64_t kAnswersFirst = 100;  // before a server is attached to
constexpr uint64_t kMomentMsMax = 1500;  // after them
constexpr uint32_t kTriesMax = 300;

struct Settings {
  std::string suite = "attach";
  std::string source = "step";
  std::string only = ".*";
  uint64_t times = 0;  // 0: as many as the suite has by default
  double seconds = 0;  // likewise
  int replays = 20;
  uint64_t seed = 1;
  std::string keep;
  std::string json;
};

recorder::SoftwareSource SourceOf(const Settings& settings) {
  return settings.source == "step" ? recorder::SoftwareSource::kStep
                                   : recorder::SoftwareSource::kTracer;
}

// A line of /proc/pid/status, as a number.
uint64_t StatusNumber(pid_t process, const std::string& name) {
  std::ifstream file(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":")) {
      return std::strtoull(line.c_str() + name.size() + 1, nullptr, 10);
    }
  }
  return 0;
}

// The subject, while this lives, and its clients.
class Running {
 public:
  static Result<std::unique_ptr<Running>> Start(const Subject& subject,
                                                const std::string& folder) {
    std::vector<std::string> command;
    command.reserve(subject.command.size());
    for (const std::string& argument : subject.command) {
      command.push_back(argument == "SOCKET"  ? folder + "/socket"
                        : argument == "INPUT" ? folder + "/input"
                                              : argument);
    }
    fs::remove(folder + "/socket");
    const Fd nowhere(open("/dev/null", O_RDWR | O_CLOEXEC));
    CLEW_ASSIGN_OR_RETURN(process,
                          SpawnProgram(command, {.input = nowhere.get(),
                                                 .output = nowhere.get(),
                                                 .errors = nowhere.get()}));
    auto running = std::make_unique<Running>(process);
    if (!subject.request.text.empty()) {
      running->load_ = std::make_unique<Load>(folder + "/socket",
                                              subject.request, subject.clients);
      if (!running->load_->Await(kAnswersFirst)) {
        return Unsupported("{} does not answer", subject.name);
      }
    }
    return running;
  }

  explicit Running(pid_t process) : process_(process) {}
  ~Running() {
    kill(process_, SIGKILL);
    (void)WaitForChild(process_);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  pid_t process() const { return process_; }

 private:
  const pid_t process_;
  std::unique_ptr<Load> load_;
};

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Adds to `row` what `clew solve` and `clew replay` say of the bundle.
Status SolveAndReplay(const std::string& bundle, const std::string& folder,
                      int replays, nlohmann::json& row) {
  CLEW_ASSIGN_OR_RETURN(solved, RunClew(CLEW_BENCH_CLEW, {"solve", bundle},
                                        folder + "/out.json"));
  const auto number = [&](const char* name) {
    return solved.printed.value(name, uint64_t{0});
  };
  row["verdict"] = solved.printed.value("verdict", "");
  row["grade"] = solved.printed.value("grade", "");
  row["reason"] = solved.printed.value("reason", "");
  row["solve_s"] = solved.wall_s;
  row["solve_rss_mb"] = solved.rss_mb;
  row["memory_bytes_compared"] = number("memory_bytes_compared");
  row["memory_bytes_differing"] =
      number("memory_bytes_compared") - number("memory_bytes_equal");
  row["replays"] = replays;
  row["replays_agree"] = 0;
  if (row["verdict"] == "witness") {
    CLEW_ASSIGN_OR_RETURN(replayed, RunClew(CLEW_BENCH_CLEW,
                                            {"replay", "--check",
                                             std::to_string(replays), bundle},
                                            folder + "/out.json"));
    row["replays_agree"] = replayed.printed.value("agree", 0);
    row["replays_s"] = replayed.wall_s;
  }
  return {};
}

std::string BundleOf(const Subject& subject, uint64_t seed,
                     const Settings& settings, const std::string& folder) {
  return settings.keep.empty()
             ? folder + "/run.clew"
             : fmt::format("{}/{}-{}.clew", settings.keep, subject.name, seed);
}

Result<nlohmann::json> AttachOnce(const Subject& subject, uint64_t seed,
                                  double seconds, const Settings& settings,
                                  const std::string& folder) {
  CLEW_ASSIGN_OR_RETURN(running, Running::Start(subject, folder));
  const uint64_t moment_ms = Random(seed).Below(kMomentMsMax);
  std::this_thread::sleep_for(std::chrono::milliseconds(moment_ms));
  nlohmann::json row = {
      {"program", subject.name},
      {"seed", seed},
      {"moment_ms", moment_ms},
      {"threads", StatusNumber(running->process(), "Threads")},
      {"rss_mb",
       static_cast<double>(StatusNumber(running->process(), "VmRSS")) / 1024}};
  const std::string bundle = BundleOf(subject, seed, settings, folder);
  fs::remove_all(bundle);
  recorder::RecordOptions options;
  options.source = SourceOf(settings);
  options.process = running->process();
  options.output = bundle;
  options.seed = seed;
  const auto start = Clock::now();
  options.is_over = [&] { return SecondsSince(start) > seconds; };
  CLEW_ASSIGN_OR_RETURN(outcome, recorder::Record(options));
  row["record_s"] = SecondsSince(start);
  running.reset();  // so that it takes no time from what follows
  row["stopped_ms"] = outcome.stopped_ms;
  row["instructions"] = outcome.insns;
  CLEW_RETURN_IF_ERROR(SolveAndReplay(bundle, folder, settings.replays, row));
  return row;
}

void PrintAttachHeading() {
  fmt::print(
      "{:14} {:>4} {:>7} {:>7} {:>8} {:>9} {:>9} {:>8} {:>8} {:>7}  {}\n",
      "program", "seed", "threads", "MB", "stop ms", "insns", "insns/s",
      "solve s", "differ", "replays", "answer");
  std::fflush(stdout);
}

std::string ReplaysOf(const nlohmann::json& row) {
  return fmt::format("{}/{}", row["replays_agree"].get<int>(),
                     row["replays"].get<int>());
}

std::string AnswerOf(const nlohmann::json& row) {
  return row["verdict"] == "witness"
             ? row["grade"].get<std::string>()
             : fmt::format("{}: {}", row["verdict"].get<std::string>(),
                           row["reason"].get<std::string>());
}

void PrintAttachRow(const nlohmann::json& row) {
  const auto insns = row["instructions"].get<uint64_t>();
  fmt::print(
      "{:14} {:4} {:7} {:7.1f} {:8} {:9} {:9.0f} {:8.2f} {:8} {:>7}  {}\n",
      row["program"].get<std::string>(), row["seed"].get<uint64_t>(),
      row["threads"].get<uint64_t>(), row["rss_mb"].get<double>(),
      row["stopped_ms"].get<uint64_t>(), insns,
      static_cast<double>(insns) / row["record_s"].get<double>(),
      row["solve_s"].get<double>(),
      row["memory_bytes_differing"].get<uint64_t>(), ReplaysOf(row),
      AnswerOf(row));
}

double TimeNatively(const std::vector<std::string>& command) {
  const test::Silence silence;
  const auto start = Clock::now();
  if (const auto child = SpawnProgram(command, {})) {
    (void)WaitForChild(*child);
  }
  return SecondsSince(start);
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Natively and recorded in turns.
Result<nlohmann::json> Cost(const Subject& subject, uint64_t rounds,
                            const Settings& settings,
                            const std::string& folder) {
  std::vector<double> native_s;
  std::vector<double> recorded_s;
  uint64_t insns = 0;
  for (uint64_t i = 0; i < rounds; ++i) {
    native_s.push_back(TimeNatively(subject.command));
    recorder::RecordOptions options;
    options.source = SourceOf(settings);
    options.command = subject.command;
    options.output = folder + "/run.clew";
    options.seed = settings.seed;
    fs::remove_all(options.output);
    const test::Silence silence;
    const auto start = Clock::now();
    CLEW_ASSIGN_OR_RETURN(outcome, recorder::Record(options));
    recorded_s.push_back(SecondsSince(start));
    insns = outcome.insns;
  }
  const double native = Median(native_s);
  const double recorded = Median(recorded_s);
  return nlohmann::json{
      {"program", subject.name},
      {"instructions", insns},
      {"native_s", native},
      {"recorded_s", recorded},
      {"slow_down", recorded / native},
      {"instructions_per_s", static_cast<double>(insns) / recorded}};
}

void PrintCostHeading() {
  fmt::print("{:14} {:>9} {:>10} {:>10} {:>10} {:>9}\n", "program", "insns",
             "native s", "recorded s", "native = 1", "insns/s");
  std::fflush(stdout);
}

void PrintCostRow(const nlohmann::json& row) {
  fmt::print("{:14} {:9} {:10.4f} {:10.2f} {:10.0f} {:9.0f}\n",
             row["program"].get<std::string>(),
             row["instructions"].get<uint64_t>(), row["native_s"].get<double>(),
             row["recorded_s"].get<double>(), row["slow_down"].get<double>(),
             row["instructions_per_s"].get<double>());
}

Result<nlohmann::json> FailOnce(const Subject& subject, uint64_t seed,
                                const Settings& settings,
                                const std::string& folder) {
  const std::string bundle = BundleOf(subject, seed, settings, folder);
  fs::remove_all(bundle);
  recorder::RecordOptions options;
  options.source = SourceOf(settings);
  options.command = subject.command;
  options.output = bundle;
  options.seed = seed;
  const auto start = Clock::now();
  const auto record = [&] {
    const test::Silence silence;
    return recorder::RecordUntilFail(options, {.tries_max = kTriesMax},
                                     nullptr);
  };
  CLEW_ASSIGN_OR_RETURN(outcome, record());
  nlohmann::json row = {{"program", subject.name},
                        {"seed", outcome.seed},
                        {"tries", outcome.seed - seed + 1},
                        {"record_s", SecondsSince(start)},
                        {"instructions", outcome.insns}};
  CLEW_RETURN_IF_ERROR(SolveAndReplay(bundle, folder, settings.replays, row));
  return row;
}

void PrintFailHeading() {
  fmt::print("{:14} {:>5} {:>9} {:>9} {:>8} {:>10} {:>8} {:>7}  {}\n",
             "program", "tries", "insns", "record s", "solve s", "compared",
             "differ", "replays", "answer");
  std::fflush(stdout);
}

void PrintFailRow(const nlohmann::json& row) {
  fmt::print("{:14} {:5} {:9} {:9.1f} {:8.2f} {:10} {:8} {:>7}  {}\n",
             row["program"].get<std::string>(), row["tries"].get<uint64_t>(),
             row["instructions"].get<uint64_t>(), row["record_s"].get<double>(),
             row["solve_s"].get<double>(),
             row["memory_bytes_compared"].get<uint64_t>(),
             row["memory_bytes_differing"].get<uint64_t>(), ReplaysOf(row),
             AnswerOf(row));
}

using MakeRow = std::function<Result<nlohmann::json>(const Subject&, uint64_t)>;

// A row for each subject and number in 0 .. times - 1.
void Measure(const std::vector<Subject>& subjects, uint64_t times,
             const Settings& settings, const MakeRow& make,
             void (*print)(const nlohmann::json&), nlohmann::json& rows) {
  const std::regex only(settings.only);
  for (const Subject& subject : subjects) {
    if (!std::regex_search(subject.name, only)) {
      continue;
    }
    if (!FindProgram(subject.command[0])) {
      fmt::print("{:14} not installed\n", subject.name);
      continue;
    }
    for (uint64_t i = 0; i < times; ++i) {
      const auto row = make(subject, i);
      if (row) {
        rows.push_back(*row);
        print(*row);
      } else {
        fmt::print("{:14} error: {}\n", subject.name, row.error().message);
        rows.push_back(
            {{"program", subject.name}, {"error", row.error().message}});
      }
      std::fflush(stdout);
    }
  }
}

Status RunAll(const Settings& settings) {
  CLEW_ASSIGN_OR_RETURN(scratch, ScratchFolder::Make("bench_native"));
  const std::string folder = scratch.path();
  const auto or_else = [](auto given, auto otherwise) {
    return given == decltype(given){} ? otherwise : given;
  };
  const auto attach = [&](double seconds) {
    return [&settings, &folder, seconds](const Subject& subject, uint64_t i) {
      return AttachOnce(subject, settings.seed + i, seconds, settings, folder);
    };
  };
  nlohmann::json rows = nlohmann::json::array();
  const auto wanted = [&](const char* suite) {
    return settings.suite == suite || settings.suite == "all";
  };
  if (wanted("attach")) {
    PrintAttachHeading();
    Measure(Attached(), or_else(settings.times, uint64_t{10}), settings,
            attach(or_else(settings.seconds, 5.0)), PrintAttachRow, rows);
  }
  if (wanted("real")) {
    test::WriteText(folder + "/input", test::RandomLines(kInputBytes));
    PrintAttachHeading();
    Measure(Real(), or_else(settings.times, uint64_t{1}), settings,
            attach(or_else(settings.seconds, 60.0)), PrintAttachRow, rows);
  }
  if (wanted("cost")) {
    PrintCostHeading();
    Measure(
        Launched(), 1, settings,
        [&](const Subject& subject, uint64_t) {
          return Cost(subject, or_else(settings.times, uint64_t{3}), settings,
                      folder);
        },
        PrintCostRow, rows);
  }
  if (wanted("fail")) {
    PrintFailHeading();
    Measure(
        Failing(), or_else(settings.times, uint64_t{1}), settings,
        [&](const Subject& subject, uint64_t i) {
          return FailOnce(subject, settings.seed + i * kTriesMax, settings,
                          folder);
        },
        PrintFailRow, rows);
  }
  return WriteRows(rows, settings.json);
}

int Main(int argc, char** argv) {
  CLI::App app("what recordings of the program on this CPU cost and give");
  Settings settings;
  app.add_option("--suite", settings.suite, "attach, real, cost, fail or all")
      ->capture_default_str();
  app.add_option("--source", settings.source, "step or tracer")
      ->check(CLI::IsMember({"step", "tracer"}))
      ->capture_default_str();
  app.add_option("--only", settings.only, "programs whose name matches");
  app.add_option("--times", settings.times,
                 "recordings of each program (attach 10, cost 3, others 1)");
  app.add_option("--seconds", settings.seconds,
                 "of each that attaches (attach 5, real 60)");
  app.add_option("--replays", settings.replays, "of each that is solved")
      ->capture_default_str();
  app.add_option("--seed", settings.seed, "of moments and schedules")
      ->capture_default_str();
  app.add_option("--keep", settings.keep,
                 "folder that keeps the bundles of attach, real and fail");
  app.add_option("--json", settings.json, "write the rows there, too");
  CLI11_PARSE(app, argc, argv);
  if (const Status status = RunAll(settings); !status) {
    fmt::print(stderr, "bench_native: {}\n", status.error().message);
    return ExitCodeOf(status.error().code);
  }
  return 0;
}

}  // namespace
}  // namespace clew::bench

int main(int argc, char** argv) { return clew::bench::Main(argc, argv); }
