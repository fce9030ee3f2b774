#include "bench/encodings_recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "bench/cpu_time.h"
#include "constraints/verdict.h"
#include "follower/bundle/bundle_recording.h"
#include "follower/recording.h"
#include "recorder/software/record.h"
#include "recorder/software/until_fail.h"
#include "solver/search/guess_run.h"
#include "solver/solve.h"
#include "symbolic/trace_builder.h"
#include "tests/support/silence.h"

namespace clew::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kTriesMax = 200;
constexpr uint64_t kLearnInsnsMax = 20'000'000;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Result<NamedBundle> RecordOne(const std::string& folder,
                              const std::string& name,
                              std::vector<std::string> command) {
  recorder::RecordOptions options;
  options.command = std::move(command);
  options.command[0] =
      std::string(CLEW_BENCH_PROGRAMS "/") + options.command[0];
  options.output = fmt::format("{}/{}.clew", folder, name);
  options.source = recorder::SoftwareSource::kQemu;
  options.plugin_path = CLEW_BENCH_PLUGIN;
  const test::Silence silence;
  CLEW_RETURN_IF_ERROR(
      recorder::RecordUntilFail(options, {.tries_max = kTriesMax}, nullptr));
  return NamedBundle{.name = name, .path = options.output};
}

// A recording as constraints, and what they live on.
struct RecordedTrace {
  std::unique_ptr<follower::OpenedRecording> session;
  constraints::ExprPool pool;
  symbolic::BuiltTrace built;
};

struct StreamCounts {
  uint64_t insns = 0;
  uint64_t gaps = 0;
};

Result<StreamCounts> CountStreams(const follower::Recording& recording) {
  CLEW_ASSIGN_OR_RETURN(streams, recording.open_streams());
  StreamCounts counts;
  for (const Tid thread : streams->threads()) {
    while (true) {
      CLEW_ASSIGN_OR_RETURN(item, streams->Next(thread));
      if (!item) {
        break;
      }
      const auto* block = std::get_if<StreamBlock>(&*item);
      counts.insns += block != nullptr ? block->insn_count : 0;
      counts.gaps += block == nullptr ? 1 : 0;
    }
  }
  return counts;
}

// Along `steps`, else along the guess.
Result<std::unique_ptr<RecordedTrace>> BuildRecordedTrace(
    const follower::Recording& recording,
    const std::vector<ScheduleStep>& steps) {
  auto trace = std::make_unique<RecordedTrace>();
  CLEW_ASSIGN_OR_RETURN(session, follower::OpenedRecording::Open(recording));
  trace->session = std::move(session);
  const follower::Process& start = trace->session->start();
  solver::WordTable words(start.thread_count(), recording.clock_slack_ticks);
  const auto learned = solver::LearnAlongPaths(
      *solver::FirstPoint(start, recording.clock_slack_ticks, {}),
      kLearnInsnsMax, recording.failure, words, nullptr);
  if (!learned.to_the_end) {
    return LimitReached("too long to learn all contested accesses of");
  }
  CLEW_ASSIGN_OR_RETURN(
      built,
      symbolic::BuildTrace(
          start, words.ContestedWords(), trace->pool,
          {.clock_slack_ticks = recording.clock_slack_ticks, .along = steps}));
  trace->built = std::move(built);
  return trace;
}

// Why the trace says less than the recording; empty if it does not.
Result<std::string> WhatIsMissing(const follower::Recording& recording,
                                  const symbolic::BuiltTrace& built) {
  CLEW_ASSIGN_OR_RETURN(counts, CountStreams(recording));
  if (counts.gaps == 0 && counts.insns == built.insns_run) {
    return std::string();
  }
  return fmt::format("the trace has {} of {} instructions, {} gaps; ",
                     built.insns_run, counts.insns, counts.gaps);
}

std::string NoteOf(const solver::SolveReport& report) {
  switch (report.verdict) {
    case constraints::Verdict::kWitness:
      return fmt::format(
          "checked, {}, {}", report.schedule.engine,
          report.schedule.grade == WitnessGrade::kMemoryExact
              ? "memory-exact"
              : fmt::format(
                    "path-exact, {} bytes of memory differ",
                    report.memory.bytes_compared - report.memory.bytes_equal));
    case constraints::Verdict::kUnsat:
      return report.conflict.empty() ? "" : report.conflict.front();
    case constraints::Verdict::kUnknown:
      break;
  }
  return report.reason;
}

Result<solver::SolveReport> SolveBundle(const std::string& path,
                                        double seconds) {
  CLEW_ASSIGN_OR_RETURN(opened, follower::OpenRecording(path));
  solver::SolveOptions options;
  options.time_limit_s = seconds;
  return solver::Solve(opened->recording, options, nullptr);
}

// All that `clew solve` does but writing the schedule, which is returned; empty
// if none was found.
std::vector<ScheduleStep> SolveDefault(const NamedBundle& bundle,
                                       const Settings& settings, Row& row) {
  const auto start = Clock::now();
  const double cpu_before = CpuSeconds();
  const auto report = SolveBundle(bundle.path, settings.seconds);
  row.seconds = SecondsSince(start);
  row.cpu_seconds = CpuSeconds() - cpu_before;
  if (!report) {
    row.note = report.error().message;
    return {};
  }
  row.verdict = ToString(report->verdict);
  row.note = NoteOf(*report);
  return report->schedule.steps;
}

// Rows of the methods that solve a formula.
void MeasureFormulas(const std::string& instance,
                     const symbolic::BuiltTrace& built, bool order_only,
                     const std::string& missing, const Settings& settings,
                     Table& table) {
  for (const std::string& method : settings.methods) {
    if (const auto encoding = EncodingCalled(method)) {
      Row row =
          SolveEncoding(instance, built.trace, order_only, *encoding, settings);
      row.note = missing + row.note;
      table.Add(row);
    }
  }
}

// The same rows where there is no formula.
void AddWithoutTrace(const std::string& instance, const std::string& why,
                     const Settings& settings, Table& table) {
  for (const std::string& method : settings.methods) {
    if (EncodingCalled(method)) {
      table.Add({.instance = instance,
                 .method = method,
                 .verdict = kNoTrace,
                 .note = why});
    }
  }
}

// The formulas of one recording, at the addresses of a run along `steps`;
// afterwards `row` has the counts of the read-from encoding.
Status MeasureTrace(const NamedBundle& bundle, const Settings& settings,
                    const std::vector<ScheduleStep>& steps, Table& table,
                    Row& row) {
  CLEW_ASSIGN_OR_RETURN(opened, follower::OpenRecording(bundle.path));
  CLEW_ASSIGN_OR_RETURN(trace, BuildRecordedTrace(opened->recording, steps));
  const symbolic::BuiltTrace& built = trace->built;
  CLEW_ASSIGN_OR_RETURN(missing, WhatIsMissing(opened->recording, built));
  row.accesses = built.trace.access_count();
  row.counts =
      solver::CountFormula(built.trace, solver::EncodingKind::kReadFrom);
  const Form form =
      settings.form == Form::kPublished ? bundle.published : settings.form;
  MeasureFormulas(bundle.name, built, form == Form::kOrder, missing, settings,
                  table);
  return {};
}

}  // namespace

Result<std::vector<NamedBundle>> RecordPrograms(
    const std::string& folder, const std::vector<uint32_t>& racey) {
  std::vector<NamedBundle> bundles;
  for (const uint32_t iterations : racey) {
    CLEW_ASSIGN_OR_RETURN(bundle,
                          RecordOne(folder, fmt::format("racey-{}", iterations),
                                    {"racey", fmt::format("{}", iterations)}));
    bundle.published = Form::kOrder;
    bundles.push_back(bundle);
  }
  for (const char* name : {"bbuf", "sbuf", "pfscan"}) {
    CLEW_ASSIGN_OR_RETURN(bundle, RecordOne(folder, name, {name}));
    bundles.push_back(bundle);
  }
  return bundles;
}

void MeasureBundle(const NamedBundle& bundle, const Settings& settings,
                   Table& table) {
  Row row{.instance = bundle.name, .method = "default"};
  const auto steps = SolveDefault(bundle, settings, row);
  if (const Status measured = MeasureTrace(bundle, settings, steps, table, row);
      !measured) {
    AddWithoutTrace(bundle.name, measured.error().message, settings, table);
  }
  if (std::ranges::find(settings.methods, row.method) !=
      settings.methods.end()) {
    table.Add(row);
  }
}

}  // namespace clew::bench
