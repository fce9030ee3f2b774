#include "bench/bpf_inputs/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "bench/bpf_inputs/run.h"
#include "common/os/scratch_folder.h"
#include "recorder/hardware/input_thread.h"

namespace clew::bench {
namespace {

namespace bpf = recorder::bpf;

struct Recording {
  const char* name;
  LoadRecorder how;
};
constexpr uint64_t kDefaultRate = recorder::InputsOptions().bytes_per_second;
constexpr Recording kRecordings[] = {
    {"none", {}},
    {"default", {.bytes_per_second = kDefaultRate}},
    // Calls are over the rate; the ring is full.
    {"1M a second", {.bytes_per_second = 1 << 20}},
    {"late reader", {.bytes_per_second = kDefaultRate, .pause_ms = 200}}};
constexpr size_t kRecordingCount = std::size(kRecordings);

using Runs = std::vector<LoadRun>;
using RunsOfRecordings = std::array<Runs, kRecordingCount>;

struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};

// Of a value for each round, from 0 on.
Spread SpreadOf(const Runs& runs,
                const std::function<double(size_t round)>& value) {
  std::vector<double> values;
  values.reserve(runs.size());
  for (size_t round = 0; round < runs.size(); ++round) {
    values.push_back(value(round));
  }
  std::ranges::sort(values);
  return {.median = values[values.size() / 2],
          .min = values.front(),
          .max = values.back()};
}

std::string ToString(const Spread& spread) {
  return fmt::format("{:.2f} ({:.2f} to {:.2f})", spread.median, spread.min,
                     spread.max);
}

// Each round is compared with that without a recording beside it.
void PrintCost(const RunsOfRecordings& all) {
  fmt::print("{:<13}{:>9}  {:<23}{:<23}{:<24}{:<23}{:>7}\n", "recording",
             "calls/s", "child, CPU s", "by that of none", "more a call, us",
             "recorder, CPU s", "MB/s");
  const Runs& none = all[0];
  for (size_t mode = 0; mode < kRecordingCount; ++mode) {
    const Runs& runs = all[mode];
    const auto of = [&](auto&& value) {
      return SpreadOf(runs, [&](size_t i) { return value(runs[i], none[i]); });
    };
    using Run = const LoadRun&;
    const Spread rate = of([](Run run, Run) { return run.rate(); });
    const Spread child = of([](Run run, Run) { return run.child_cpu_s; });
    const Spread ratio =
        of([](Run run, Run by) { return run.child_cpu_s / by.child_cpu_s; });
    const Spread more = of([](Run run, Run by) {
      return (run.child_cpu_s - by.child_cpu_s) * 1e6 /
             static_cast<double>(run.made);
    });
    const Spread recorder = of([](Run run, Run) { return run.recorder_cpu_s; });
    const Spread log = of([](Run run, Run) {
      return static_cast<double>(run.log_bytes) / 1e6 / run.seconds;
    });
    fmt::print("{:<13}{:>9.0f}  {:<23}{:<23}{:<24}{:<23}{:>7.1f}\n",
               kRecordings[mode].name, rate.median, ToString(child),
               ToString(ratio), ToString(more), ToString(recorder), log.median);
  }
}

// Of all rounds together.
void PrintCounts(const RunsOfRecordings& all) {
  fmt::print("\n{:<13}{:>10}{:>10}{:>10}{:>11}{:>11}{:>11}{:>11}  {}\n",
             "recording", "made", "seen", "reported", "ring full", "over rate",
             "told lost", "misplaced", "each call told or counted");
  for (size_t mode = 1; mode < kRecordingCount; ++mode) {
    LoadRun sum;
    size_t right = 0;
    for (const LoadRun& run : all[mode]) {
      sum.made += run.made;
      sum.counts.units += run.counts.units;
      sum.counts.reported += run.counts.reported;
      for (const auto cause : {bpf::kRawRingFull, bpf::kRawBudget}) {
        sum.counts.lost[cause] += run.counts.lost[cause];
      }
      sum.lost += run.lost;
      sum.misplaced += run.misplaced;
      right += run.is_right() ? 1 : 0;
    }
    fmt::print("{:<13}{:>10}{:>10}{:>10}{:>11}{:>11}{:>11}{:>11}  {} of {}\n",
               kRecordings[mode].name, sum.made, sum.counts.units,
               sum.counts.reported, sum.counts.lost[bpf::kRawRingFull],
               sum.counts.lost[bpf::kRawBudget], sum.lost, sum.misplaced, right,
               all[mode].size());
  }
}

nlohmann::json RowOf(const Recording& mode, uint32_t round,
                     const LoadRun& run) {
  return {{"suite", "load"},
          {"mode", mode.name},
          {"round", round},
          {"calls_per_s", run.rate()},
          {"child_cpu_s", run.child_cpu_s},
          {"recorder_cpu_s", run.recorder_cpu_s},
          {"made", run.made},
          {"seen", run.counts.units},
          {"reported", run.counts.reported},
          {"lost", run.counts.lost_total()},
          {"ring_full", run.counts.lost[bpf::kRawRingFull]},
          {"over_rate", run.counts.lost[bpf::kRawBudget]},
          {"told", run.calls},
          {"lost_told", run.lost},
          {"misplaced", run.misplaced},
          {"log_bytes", run.log_bytes}};
}

}  // namespace

Status MeasureLoad(const LoadShape& shape, uint32_t rounds,
                   nlohmann::json& rows) {
  CLEW_ASSIGN_OR_RETURN(scratch, ScratchFolder::Make("bench_bpf_inputs"));
  const CallPlan plan(shape);
  fmt::print(
      "load: {} threads, {} calls/s wanted, {} s; {} rounds, in turns; median "
      "(least to most)\n\n",
      shape.threads, shape.calls_per_second, shape.seconds, rounds);
  std::fflush(stdout);
  RunsOfRecordings all;
  for (uint32_t round = 0; round < rounds; ++round) {
    // Another mode begins each time.
    for (size_t turn = 0; turn < kRecordingCount; ++turn) {
      const size_t mode = (round + turn) % kRecordingCount;
      CLEW_ASSIGN_OR_RETURN(run, RunLoad(plan, kRecordings[mode].how,
                                         scratch.path() + "/inputs.pb"));
      rows.push_back(RowOf(kRecordings[mode], round, run));
      all[mode].push_back(run);
    }
  }
  PrintCost(all);
  PrintCounts(all);
  return {};
}

}  // namespace clew::bench
