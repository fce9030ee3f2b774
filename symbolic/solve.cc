#include "symbolic/solve.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/check.h"
#include "symbolic/check.h"
#include "symbolic/trace_builder.h"

namespace clew::symbolic {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kMeasureContestedMax = 50'000;
constexpr uint64_t kMeasureInsnsMax = 100'000'000;
constexpr double kShortTurnS = 1;
constexpr double kLongTurnS = 20;
constexpr uint64_t kConstructiveFirstBelowInsns = 10'000'000;

WitnessGrade GradeOf(const CheckReport& check) {
  const bool memory_exact =
      check.memory.bytes_compared > 0 &&
      check.memory.bytes_equal == check.memory.bytes_compared;
  return memory_exact ? WitnessGrade::kMemoryExact : WitnessGrade::kPathExact;
}

// Runs the engines in turn; what one learns of shared memory helps the next.
class Portfolio {
 public:
  Portfolio(const process::Recording& recording, const process::Process& start,
            const SolveOptions& options, ProgressSink* progress)
      : recording_(recording),
        start_(start),
        options_(options),
        guided_(start, recording.failure, recording.clock_slack_ticks,
                options.guided, progress) {}

  // Sets verdict, schedule steps and engine, or why there is none.
  Status Run(SolveReport& report) {
    const solver::Deadline deadline(options_.time_limit_s);
    CLEW_ASSIGN_OR_RETURN(guess, guided_.TryGuess());
    if (guess) {
      Accept(report, guided_.report().steps,
             guided_.report().guess_was_enough ? "guess" : "guided search");
    } else {
      CLEW_RETURN_IF_ERROR(guided_.Learn());
      CLEW_RETURN_IF_ERROR(FindImpossible(report));
      CLEW_RETURN_IF_ERROR(Alternate(report, deadline));
    }
    report.guided = guided_.report();
    CLEW_RETURN_IF_ERROR(Measure(report));
    report.contested = guided_.words().contested_count();
    return {};
  }

 private:
  // A recorded branch that no order of memory accesses can explain needs no
  // search. What is shared is as learned by two runs along the recorded paths,
  // and the answer says so.
  Status FindImpossible(SolveReport& report) {
    if (guided_.long_run() || guided_.report().insns_run > kMeasureInsnsMax) {
      return {};
    }
    constraints::ExprPool pool;
    const auto built =
        BuildTrace(start_, guided_.words().ContestedWords(), pool,
                   {.clock_slack_ticks = recording_.clock_slack_ticks});
    if (built && built->impossible) {
      report.verdict = Verdict::kUnsat;
      report.conflict = {*built->impossible,
                         "timing packets and slices, which say what other "
                         "threads may have written by then"};
    }
    return {};
  }

  // Shorter turns first: most runs need little of one engine. The solver's
  // engines run the whole recording again and again, so on long ones the guided
  // search, which goes back to checkpoints, comes first.
  Status Alternate(SolveReport& report, const solver::Deadline& deadline) {
    const bool guided_first =
        guided_.long_run() ||
        guided_.report().insns_run > kConstructiveFirstBelowInsns;
    bool guided_turn = guided_first;
    double turn_s = guided_first ? kLongTurnS : kShortTurnS;
    while (report.verdict == Verdict::kUnknown) {
      if (deadline.passed()) {
        report.reason = fmt::format("{:.0f} s", options_.time_limit_s);
        return {};
      }
      const double seconds = std::min(turn_s, deadline.seconds_left());
      if (guided_.long_run()) {
        CLEW_RETURN_IF_ERROR(Guide(report, seconds));
        if (guided_.report().exhausted) {
          report.reason = guided_.report().reason;
          return {};
        }
      } else if (guided_turn) {
        CLEW_RETURN_IF_ERROR(Guide(report, seconds));
      } else {
        CLEW_RETURN_IF_ERROR(Construct(report, seconds));
      }
      if (guided_turn != guided_first) {
        turn_s *= 3;
      }
      guided_turn = !guided_turn;
    }
    return {};
  }

  Status Guide(SolveReport& report, double seconds) {
    CLEW_ASSIGN_OR_RETURN(found, guided_.Improve(seconds));
    if (found) {
      Accept(report, guided_.report().steps, "guided search");
    }
    return {};
  }

  Status Construct(SolveReport& report, double seconds) {
    solver::SolveOptions options;
    options.seconds = seconds;
    options.seed = options_.guided.seed;
    CLEW_ASSIGN_OR_RETURN(
        found, ConstructiveSearch(start_, recording_.failure,
                                  recording_.clock_slack_ticks, guided_.words(),
                                  options));
    report.constructive = std::move(found);
    const solver::SolveReport& answer = report.constructive.answer;
    if (report.constructive.decisions) {
      CLEW_ASSIGN_OR_RETURN(
          runs, guided_.TryDecisions(*report.constructive.decisions));
      if (runs) {
        Accept(report, guided_.report().steps, answer.engine);
      }
    } else if (answer.verdict == solver::Verdict::kWitness) {
      Accept(report, report.constructive.steps, answer.engine);
    } else if (answer.verdict == solver::Verdict::kUnsat) {
      report.verdict = Verdict::kUnsat;
      report.conflict = answer.conflicting_labels;
      report.conflict.push_back(answer.deepest_contradiction);
    }
    return {};
  }

  // How much was open, and how much the evidence said.
  Status Measure(SolveReport& report) {
    WordTable& words = guided_.words();
    if (guided_.long_run() || words.contested_count() > kMeasureContestedMax ||
        report.guided.insns_run > options_.guided.run.forget_before_insns ||
        guided_.report().insns_run > kMeasureInsnsMax) {
      return {};
    }
    if (words.contested_count() == 0) {
      CLEW_RETURN_IF_ERROR(guided_.Learn());
    }
    constraints::ExprPool pool;
    const auto built =
        BuildTrace(start_, words.ContestedWords(), pool,
                   {.clock_slack_ticks = recording_.clock_slack_ticks});
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
  GuidedSearch guided_;
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
    report.outputs_differing = check.outputs_differing;
    report.insns = check.insns;
  }
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return report;
}

}  // namespace clew::symbolic
