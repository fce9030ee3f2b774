// Prints what watching system calls by eBPF costs the program that makes them.
//
//   build/bench/bench_bpf_inputs [--suite calls|load|all] [--threads N]
//                                [--rate N] [--seconds N] [--rounds N]
//                                [--json FILE]
//
//   calls  one thread as fast as it can: nanoseconds a call; median and spread.
//          "free": nothing is watched. "other": another process is watched,
//          which is what all others pay. "watched": this one, with room for
//          everything. "over": this one, with a budget that is spent at once,
//          so that calls are counted.
//   load   threads that together make so many calls a second, in turns: without
//          a recording, with one as `clew record --inputs` makes it, and with
//          two that lose calls: CPU time of both sides, and whether each call
//          was told, or counted at its place in its thread
//
// Needs root, or CAP_BPF and CAP_PERFMON.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/bpf_inputs/calls.h"
#include "bench/bpf_inputs/load.h"
#include "bench/clew_run.h"
#include "common/result.h"

namespace clew::bench {
namespace {

struct Settings {
  std::string suite = "calls";
  LoadShape load;
  uint32_t rounds = 5;
  std::string json;
};

Status RunAll(const Settings& settings) {
  nlohmann::json rows = nlohmann::json::array();
  if (settings.suite != "load") {
    CLEW_RETURN_IF_ERROR(MeasureCalls(rows));
  }
  if (settings.suite != "calls") {
    CLEW_RETURN_IF_ERROR(MeasureLoad(settings.load, settings.rounds, rows));
  }
  return WriteRows(rows, settings.json);
}

int Main(int argc, char** argv) {
  CLI::App app("what watching system calls by eBPF costs");
  Settings settings;
  app.add_option("--suite", settings.suite, "calls, load or all")
      ->check(CLI::IsMember({"calls", "load", "all"}))
      ->capture_default_str();
  app.add_option("--threads", settings.load.threads, "of the load")
      ->check(CLI::Range(1u, LoadShape::kThreadsMax))
      ->capture_default_str();
  app.add_option("--rate", settings.load.calls_per_second,
                 "calls a second of all its threads together")
      ->check(CLI::Range(1u, 10'000'000u))
      ->capture_default_str();
  app.add_option("--seconds", settings.load.seconds, "of each run of the load")
      ->check(CLI::Range(1u, 3600u))
      ->capture_default_str();
  app.add_option("--rounds", settings.rounds, "of each mode of the load")
      ->check(CLI::Range(1u, 1000u))
      ->capture_default_str();
  app.add_option("--json", settings.json, "write the rows there, too");
  CLI11_PARSE(app, argc, argv);
  if (const Status status = RunAll(settings); !status) {
    fmt::print(stderr, "bench_bpf_inputs: {}\n", status.error().message);
    return ExitCodeOf(status.error().code);
  }
  return 0;
}

}  // namespace
}  // namespace clew::bench

int main(int argc, char** argv) { return clew::bench::Main(argc, argv); }
