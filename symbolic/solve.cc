#include "symbolic/solve.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/check.h"
#include "symbolic/check.h"
#include "symbolic/trace_builder.h"
#include "symbolic/window_search.h"

namespace clew::symbolic {
namespace {

using Clock = std::chrono::steady_clock;

// Longer recordings are neither written down as constraints nor searched as a
// whole.
constexpr uint64_t kWholeInsnsMax = 20'000'000;
constexpr uint64_t kMeasureContestedMax = 50'000;
constexpr double kFirstWindowTurnS = 2;
constexpr double kFirstWholeTurnS = 1;

WitnessGrade GradeOf(const CheckReport& check) {
  return AgreesWithCore(check) ? WitnessGrade::kMemoryExact
                               : WitnessGrade::kPathExact;
}

// Runs the engines in turn: the guess, windows around what contradicts it, and
// the recording as a whole.
class Portfolio {
 public:
  Portfolio(const process::Recording& recording, const process::Process& start,
            const SolveOptions& options, ProgressSink* progress)
      : recording_(recording),
        start_(start),
        options_(options),
        progress_(progress),
        deadline_(options.time_limit_s),
        windows_(start, recording.failure, recording.clock_slack_ticks,
                 options.windows, progress),
        words_(start.thread_count(), recording.clock_slack_ticks) {}

  // Sets verdict, schedule steps and engine, or why there is none.
  Status Run(SolveReport& report) {
    CLEW_ASSIGN_OR_RETURN(guess, windows_.TryGuess(options_.time_limit_s));
    if (guess) {
      Accept(report, windows_.report().steps, "guess");
    } else {
      CLEW_RETURN_IF_ERROR(Alternate(report));
    }
    report.windows = windows_.report();
    CLEW_RETURN_IF_ERROR(Measure(report));
    report.contested = words_.contested_count();
    return {};
  }

 private:
  // Windows as long as they come further; turns for both once they do not,
  // shorter ones first.
  Status Alternate(SolveReport& report) {
    double window_turn_s = kFirstWindowTurnS;
    double whole_turn_s = kFirstWholeTurnS;
    while (report.verdict == Verdict::kUnknown) {
      if (deadline_.passed()) {
        report.reason = fmt::format("{:.0f} s", options_.time_limit_s);
        return {};
      }
      CLEW_ASSIGN_OR_RETURN(came_further, SearchWindows(report, window_turn_s));
      if (came_further || report.verdict != Verdict::kUnknown) {
        continue;
      }
      if (!deadline_.passed() && Learn(kWholeInsnsMax)) {
        CLEW_RETURN_IF_ERROR(SearchWhole(report, whole_turn_s));
      }
      window_turn_s *= 3;
      whole_turn_s *= 3;
    }
    return {};
  }

  // Whether a contradiction was left behind.
  Result<bool> SearchWindows(SolveReport& report, double seconds) {
    const uint64_t stretches = windows_.report().stretches;
    CLEW_ASSIGN_OR_RETURN(
        found, windows_.Run(std::min(seconds, deadline_.seconds_left())));
    if (found) {
      Accept(report, windows_.report().steps, "window search");
    }
    return windows_.report().stretches > stretches;
  }

  // What is shared and contested, unless the recording is longer than that or
  // its beginning was forgotten. True: it is known.
  bool Learn(uint64_t insns_max) {
    if (!learned_ && start_.tape().HasBeginning()) {
      const auto first = FirstPoint(start_, recording_.clock_slack_ticks, {});
      learned_ = LearnAlongPaths(*first, insns_max, recording_.failure, words_,
                                 progress_)
                     .to_the_end;
    }
    return learned_;
  }

  Status SearchWhole(SolveReport& report, double seconds) {
    if (!asked_impossible_) {
      asked_impossible_ = true;
      FindImpossible(report);
    }
    return report.verdict == Verdict::kUnknown
               ? Construct(report, std::min(seconds, deadline_.seconds_left()))
               : Status();
  }

  // The recording as constraints over the words known to be contested.
  Result<BuiltTrace> WriteDown(constraints::ExprPool& pool) const {
    return BuildTrace(start_, words_.ContestedWords(), pool,
                      {.clock_slack_ticks = recording_.clock_slack_ticks});
  }

  // A recorded branch that no order of memory accesses can explain needs no
  // search. What is shared is as learned by two runs along the recorded paths,
  // and the answer says so.
  void FindImpossible(SolveReport& report) {
    constraints::ExprPool pool;
    const auto built = WriteDown(pool);
    if (built && built->impossible) {
      report.verdict = Verdict::kUnsat;
      report.conflict = {*built->impossible,
                         "timing packets and slices, which say what other "
                         "threads may have written by then"};
    }
  }

  Status Construct(SolveReport& report, double seconds) {
    solver::SolveOptions options;
    options.seconds = seconds;
    options.seed = options_.windows.seed;
    CLEW_ASSIGN_OR_RETURN(
        found,
        ConstructiveSearch(start_, recording_.failure,
                           recording_.clock_slack_ticks, words_, options));
    report.constructive = std::move(found);
    const solver::SolveReport& answer = report.constructive.answer;
    if (report.constructive.edges) {
      return TryEdges(report, *report.constructive.edges);
    }
    if (answer.verdict == Verdict::kWitness) {
      Accept(report, report.constructive.steps, answer.engine);
    } else if (answer.verdict == Verdict::kUnsat) {
      report.verdict = Verdict::kUnsat;
      report.conflict = answer.conflicting_labels;
      report.conflict.push_back(answer.deepest_contradiction);
    }
    return {};
  }

  // Z3 found this order; whether the machine can follow it shows here.
  Status TryEdges(SolveReport& report, const std::vector<OrderEdge>& edges) {
    GuessRunner runner(recording_.failure, nullptr, {}, progress_);
    CLEW_ASSIGN_OR_RETURN(
        outcome,
        runner.Run(FirstPoint(start_, recording_.clock_slack_ticks, {}),
                   edges));
    if (outcome.end == RunOutcome::End::kWitness) {
      Accept(report, CollectSteps(*outcome.last, outcome.steps),
             report.constructive.answer.engine);
    }
    return {};
  }

  // How much was open, and how much the evidence said.
  Status Measure(SolveReport& report) {
    if (!Learn(options_.measure_insns_max) ||
        words_.contested_count() > kMeasureContestedMax) {
      return {};
    }
    constraints::ExprPool pool;
    const auto built = WriteDown(pool);
    if (built) {  // otherwise it is too large, and there is no figure
      report.ambiguity =
          solver::MeasureAmbiguity(WithoutAssumptions(*built), {});
    }
    return {};
  }

  static void Accept(SolveReport& report, std::vector<ScheduleStep> steps,
                     std::string engine) {
    report.verdict = Verdict::kWitness;
    report.schedule.steps = std::move(steps);
    report.schedule.engine = std::move(engine);
  }

  const process::Recording& recording_;
  const process::Process& start_;
  const SolveOptions& options_;
  ProgressSink* progress_;
  solver::Deadline deadline_;
  WindowSearch windows_;
  WordTable words_;
  bool learned_ = false;
  bool asked_impossible_ = false;
};

}  // namespace

Result<SolveReport> Solve(const process::Recording& recording,
                          const SolveOptions& options, ProgressSink* progress) {
  const auto start = Clock::now();
  CLEW_ASSIGN_OR_RETURN(session,
                        process::Session::Open(recording, options.tape));
  SolveReport report;
  CLEW_RETURN_IF_ERROR(
      Portfolio(recording, session->start(), options, progress).Run(report));
  if (report.verdict == Verdict::kWitness) {
    CLEW_ASSIGN_OR_RETURN(
        check, CheckSchedule(recording, report.schedule.steps, progress));
    CLEW_CHECK(!check.disagreement, "the checker refuses the witness: {}",
               *check.disagreement);
    report.schedule.grade = GradeOf(check);
    report.schedule.memory_bytes_compared = check.memory.bytes_compared;
    report.schedule.memory_bytes_equal = check.memory.bytes_equal;
    report.schedule.final_memory_digest = check.memory_digest;
    report.memory = std::move(check.memory);
    report.registers = std::move(check.registers);
    report.outputs_differing = check.outputs_differing;
    report.insns = check.insns;
  }
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return report;
}

}  // namespace clew::symbolic
