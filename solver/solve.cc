#include "solver/solve.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "common/check.h"
#include "common/os/deadline.h"
#include "follower/describe_run.h"
#include "machine/memory_models.h"
#include "solver/check.h"
#include "solver/doubts.h"
#include "solver/independence.h"
#include "solver/search/cuts.h"
#include "solver/search/window_search.h"
#include "symbolic/trace_builder.h"

namespace clew::solver {
namespace {

using constraints::Verdict;
using symbolic::BuildTrace;
using symbolic::WithoutAssumptions;

using Clock = std::chrono::steady_clock;

// Longer recordings are neither written down as constraints nor searched as a
// whole.
constexpr uint64_t kWholeInsnsMax = 20'000'000;
// Up to this many instructions it is found out before any search whether a
// contradiction comes in every order; that takes less than a turn of one.
constexpr uint64_t kJudgedAtOnceInsnsMax = 500'000;
constexpr uint64_t kMeasureContestedMax = 50'000;
// Whoever follows is done some time, and without that nothing is known.
constexpr double kNoLimitS = 1e9;
constexpr double kFirstWindowTurnS = 2;
constexpr double kFirstWholeTurnS = 1;

WitnessGrade GradeOf(const CheckReport& check) {
  return AgreesWithCoreDump(check) ? WitnessGrade::kMemoryExact
                                   : WitnessGrade::kPathExact;
}

// Runs the engines in turn: the guess, windows around what contradicts it, and
// the recording as a whole.
class Strategy {
 public:
  Strategy(const follower::Recording& recording, const follower::Process& start,
           const SolveOptions& options, ProgressSink* progress)
      : recording_(recording),
        start_(start),
        plain_start_(start.SequentiallyConsistent()),
        options_(options),
        progress_(progress),
        deadline_(options.time_limit_s),
        windows_(NewWindows(options.windows.seed)),
        words_(start.thread_count(), recording.clock_slack_ticks),
        cuts_(start.thread_count()) {}

  // Sets verdict, schedule steps and engine, or why there is none. An error of
  // an engine ends that engine; of the last one, the search.
  Status Run(SolveReport& report) {
    if (!options_.only_model) {
      TryGuess(report);
    }
    CLEW_RETURN_IF_ERROR(Alternate(report));
    report.windows = windows_->report();
    report.restarts = restarts_;
    Measure(report);
    report.contested = words_.contested_count();
    if (report.verdict == Verdict::kUnknown) {
      Explain(report);
    } else if (report.verdict == Verdict::kUnsat && IsWhole()) {
      report.difference = DifferenceAt(recording_, windows_->report().furthest);
    }
    return {};
  }

 private:
  // Nothing is lost of the trace, nor of the inputs as far as they were used.
  bool IsWhole() const {
    return recording_.whole && windows_->report().furthest.kind !=
                                   follower::Contradiction::Kind::kNoInput;
  }

  void TryGuess(SolveReport& report) {
    const auto turn = windows_->TryGuess(kNoLimitS);
    deadline_ = Deadline(options_.time_limit_s);
    if (!turn) {
      windows_error_ = turn.error();
    } else if (*turn == WindowTurn::kWitness) {
      Accept(report, windows_->report().steps, "guess");
    } else if (windows_->report().without_choice) {
      JudgeOnlyOrder(report);
    } else {
      JudgeContradiction(report, kJudgedAtOnceInsnsMax);
    }
  }

  // There was one order up to the contradiction of the guess.
  void JudgeOnlyOrder(SolveReport& report) {
    if (DoubtsAtOnce(recording_, words_).empty()) {
      report.verdict = Verdict::kUnsat;
      report.conflict.push_back(
          follower::Describe(windows_->report().furthest));
    }
  }

  std::unique_ptr<WindowSearch> NewWindows(uint64_t seed) const {
    WindowSearchOptions options = options_.windows;
    options.seed = seed;
    return std::make_unique<WindowSearch>(plain_start_, recording_.failure,
                                          recording_.clock_slack_ticks, options,
                                          progress_);
  }

  // Windows as long as they come further; turns for all once they do not,
  // shorter ones first.
  Status Alternate(SolveReport& report) {
    double window_turn_s = kFirstWindowTurnS;
    double whole_turn_s = kFirstWholeTurnS;
    while (report.verdict == Verdict::kUnknown && !deadline_.passed()) {
      if (!options_.only_model && !windows_error_ &&
          SearchWindows(report, *windows_, window_turn_s)) {
        continue;
      }
      if (report.verdict == Verdict::kUnknown) {
        JudgeContradiction(report, kWholeInsnsMax);
      }
      if (report.verdict != Verdict::kUnknown) {
        return {};
      }
      TryWhole(report, whole_turn_s);
      if (refuted_ ||
          ((windows_error_ || options_.only_model) && whole_is_over_)) {
        break;
      }
      if (!options_.only_model) {
        SearchAnew(report, window_turn_s);
      }
      window_turn_s *= 3;
      whole_turn_s *= 3;
    }
    return windows_error_ && !refuted_ && whole_is_over_
               ? Status(std::unexpected(*windows_error_))
               : Status();
  }

  // Whether a contradiction was left behind.
  bool SearchWindows(SolveReport& report, WindowSearch& windows,
                     double seconds) {
    const uint64_t stretches = windows.report().stretches;
    const auto turn = windows.Run(std::min(seconds, deadline_.seconds_left()));
    if (!turn) {
      windows_error_ = turn.error();
      return false;
    }
    if (*turn == WindowTurn::kWitness) {
      Accept(report, windows.report().steps, "window search");
    }
    return windows.report().stretches > stretches;
  }

  // Whether the furthest one comes in every order. An error ends the attempt:
  // the search goes on.
  void JudgeContradiction(SolveReport& report, uint64_t insns_max) {
    const follower::Contradiction& at = windows_->report().furthest;
    const auto attempt = std::tuple(at.tid, at.insn_index, insns_max);
    if (options_.only_model || at.text.empty() || judged_ == attempt) {
      return;
    }
    judged_ = attempt;
    const auto in_every_order =
        ComesInEveryOrder(recording_, plain_start_, at, insns_max, deadline_);
    if (in_every_order.value_or(false)) {
      report.verdict = Verdict::kUnsat;
      report.in_every_order = true;
      report.conflict.push_back(follower::Describe(at));
    }
  }

  // From the beginning, by other seeds, for about so long: where a search gets
  // stuck is chance, because it keeps what it chose long before, and most of
  // what others choose there is other. Each has a short turn for every
  // contradiction. Who came furthest is gone on with.
  void SearchAnew(SolveReport& report, double seconds) {
    const Deadline end(std::min(seconds, deadline_.seconds_left()));
    while (learned_ && !refuted_ && !windows_error_ && !end.passed() &&
           report.verdict == Verdict::kUnknown) {
      auto windows = NewWindows(options_.windows.seed + ++restarts_);
      while (SearchWindows(report, *windows, kFirstWindowTurnS) &&
             report.verdict == Verdict::kUnknown && !deadline_.passed()) {
      }
      if (report.verdict != Verdict::kUnknown ||
          windows->report().furthest_insns >
              windows_->report().furthest_insns) {
        windows_ = std::move(windows);
      }
    }
  }

  // What is shared and contested, unless the recording is longer than that or
  // its beginning was forgotten. True: it is known.
  bool Learn(uint64_t insns_max,
             Clock::time_point deadline = Clock::time_point::max()) {
    if (!learned_ && start_.tape().HasBeginning()) {
      const auto first =
          FirstPoint(plain_start_, recording_.clock_slack_ticks, {});
      const LearnReport learned = LearnAlongPaths(
          *first, insns_max, recording_.failure, words_, progress_, deadline);
      learned_ = learned.to_the_end;
      insns_learned_ = learned.insns_run / 2;  // in two passes
    }
    return learned_;
  }

  void TryWhole(SolveReport& report, double seconds) {
    if (whole_is_over_ || deadline_.passed()) {
      return;
    }
    if (!Learn(kWholeInsnsMax, deadline_.time())) {
      whole_is_over_ = true;
      return;
    }
    const Status searched =
        Construct(report, std::min(seconds, deadline_.seconds_left()));
    if (!searched) {
      whole_error_ = searched.error();
      whole_is_over_ = true;
    }
  }

  Status Construct(SolveReport& report, double seconds) {
    PortfolioOptions options;
    options.seconds = seconds;
    options.seed = options_.windows.seed;
    CLEW_ASSIGN_OR_RETURN(found, SearchWhole(start_, recording_.failure,
                                             recording_.clock_slack_ticks,
                                             words_, cuts_, options));
    report.whole = std::move(found);
    const PortfolioReport& answer = report.whole.answer;
    if (report.whole.edges) {
      return TryEdges(report, *report.whole.edges);
    }
    if (answer.verdict == Verdict::kWitness) {
      Accept(report, report.whole.steps, answer.engine);
      if (recording_.model != nullptr) {
        report.schedule.model = recording_.model->kind();
      }
    } else if (report.whole.exhausted) {
      Judge(report);
    }
    return {};
  }

  // Every choice was refuted. If accesses were dropped, an order may have been
  // missed that a window finds.
  void Judge(SolveReport& report) {
    whole_is_over_ = true;
    refuted_ = report.whole.answer.verdict == Verdict::kUnsat;
    report.doubts = DoubtsOf(recording_, start_.tape(), words_);
    if (refuted_ && report.doubts.empty()) {
      report.verdict = Verdict::kUnsat;
      report.conflict.push_back(report.whole.answer.deepest_contradiction);
    }
  }

  // Z3 found this order; whether the machine can follow it shows here.
  Status TryEdges(SolveReport& report, const std::vector<OrderEdge>& edges) {
    GuessRunner runner(recording_.failure, nullptr, {}, progress_);
    CLEW_ASSIGN_OR_RETURN(
        outcome,
        runner.Run(FirstPoint(plain_start_, recording_.clock_slack_ticks, {}),
                   edges));
    if (outcome.end == RunOutcome::End::kWitness) {
      Accept(report, CollectSteps(*outcome.last, outcome.steps),
             report.whole.answer.engine);
    }
    return {};
  }

  // How much was open, and how much the evidence said. The trace of constraints
  // knows sequential consistency alone: of a witness that needs more there is
  // no figure.
  void Measure(SolveReport& report) {
    if (report.schedule.model != MemoryModelKind::kSc ||
        !Learn(options_.measure_insns_max) ||
        insns_learned_ > options_.measure_insns_max ||
        words_.contested_count() > kMeasureContestedMax) {
      return;
    }
    constraints::ExprPool pool;
    const auto built =
        BuildTrace(plain_start_, words_.ContestedWords(), pool,
                   {.clock_slack_ticks = recording_.clock_slack_ticks,
                    .along = report.schedule.steps});
    if (built) {  // otherwise it is too large, and there is no figure
      report.ambiguity =
          constraints::MeasureAmbiguity(WithoutAssumptions(*built), {});
    }
  }

  // Why there is no answer.
  void Explain(SolveReport& report) const {
    report.reason =
        refuted_ ? "every order was refuted, which is no proof here"
                 : fmt::format("time limit of {:.0f} s", options_.time_limit_s);
    if (report.doubts.empty()) {
      report.doubts = DoubtsAtOnce(recording_, words_);
    }
    report.engines = {ToldOfWindows(), ToldOfWhole(report.whole)};
    if (!refuted_) {
      report.advice = {
          "a longer --time-limit",
          "a recording with finer timing packets (clew record --cyc, or a "
          "smaller --mtc-period)"};
    }
  }
  std::string ToldOfWindows() const {
    const WindowSearchReport& windows = windows_->report();
    return fmt::format(
        "window search: {} instructions without contradiction, {} windows, "
        "{} restarts{}",
        std::max(windows.furthest_insns, windows.followed_insns),
        windows.windows, restarts_,
        windows_error_ ? "; ended: " + windows_error_->message : "");
  }
  std::string ToldOfWhole(const WholeSearchReport& whole) const {
    if (whole_error_) {
      return "whole recording: ended: " + whole_error_->message;
    }
    if (!learned_) {
      return fmt::format(
          "whole recording: not searched, it is longer than {} instructions or "
          "its paths cannot be followed to the end",
          kWholeInsnsMax);
    }
    return fmt::format(
        "whole recording: {} states of {} contested instructions and {} cuts, "
        "{}",
        whole.answer.stats.nodes, whole.contested, whole.cuts,
        whole.exhausted ? "every choice refuted" : "choices left");
  }

  static void Accept(SolveReport& report, std::vector<ScheduleStep> steps,
                     std::string engine) {
    report.verdict = Verdict::kWitness;
    report.schedule.model = MemoryModelKind::kSc;
    report.schedule.steps = std::move(steps);
    report.schedule.engine = std::move(engine);
  }

  const follower::Recording& recording_;
  const follower::Process& start_;
  // For engines that know sequential consistency alone. What they find is an
  // order of every model; that they find none says nothing.
  const follower::Process plain_start_;
  const SolveOptions& options_;
  ProgressSink* progress_;
  Deadline deadline_;
  std::unique_ptr<WindowSearch> windows_;  // who came furthest
  uint64_t restarts_ = 0;
  // The contradiction that JudgeContradiction looked at last.
  std::tuple<Tid, uint64_t, uint64_t> judged_;
  WordTable words_;
  Cuts cuts_;
  bool learned_ = false;
  uint64_t insns_learned_ = 0;
  bool whole_is_over_ = false;  // nothing would come of another turn
  bool refuted_ = false;        // every choice, and nothing was dropped
  std::optional<Error> windows_error_;
  std::optional<Error> whole_error_;
};

void Fill(CheckReport check, SolveReport& report) {
  report.schedule.grade = GradeOf(check);
  report.schedule.memory_bytes_compared = check.memory.bytes_compared;
  report.schedule.memory_bytes_equal = check.memory.bytes_equal;
  report.schedule.final_memory_digest = check.memory_digest;
  report.memory = std::move(check.memory);
  report.registers = std::move(check.registers);
  report.outputs_differing = check.outputs_differing;
  report.insns = check.insns;
}

// One thread has one order, so that to follow it is to check it. Where it does
// not agree or cannot be followed, no more is said here than that.
void FollowOnlyThread(const follower::Recording& recording, SolveReport& report,
                      ProgressSink* progress) {
  follower::Recording plain = recording;
  plain.model = nullptr;
  std::vector<ScheduleStep> steps;
  auto check = CheckOnlyThread(plain, steps, progress);
  if (!check || check->disagreement) {
    return;
  }
  report.verdict = Verdict::kWitness;
  report.windows.guess_was_enough = true;
  report.schedule.steps = std::move(steps);
  report.schedule.engine = "one thread";
  Fill(*std::move(check), report);
}

Status CheckWitness(const follower::Recording& recording, SolveReport& report,
                    ProgressSink* progress) {
  follower::Recording found_under = recording;
  if (report.schedule.model == MemoryModelKind::kSc) {
    found_under.model = nullptr;
  }
  CLEW_ASSIGN_OR_RETURN(
      check, CheckSchedule(found_under, report.schedule.steps, progress));
  CLEW_CHECK(!check.disagreement, "the checker refuses the witness: {}",
             *check.disagreement);
  Fill(std::move(check), report);
  return {};
}

}  // namespace

Result<SolveReport> Solve(const follower::Recording& recording,
                          const SolveOptions& options, ProgressSink* progress) {
  const auto start = Clock::now();
  CLEW_ASSIGN_OR_RETURN(
      session, follower::OpenedRecording::Open(recording, options.tape));
  SolveReport report;
  if (recording.model != nullptr) {
    report.model = recording.model->kind();
  }
  if (session->start().thread_count() == 1) {
    FollowOnlyThread(recording, report, progress);
  }
  if (report.verdict != Verdict::kWitness) {
    CLEW_RETURN_IF_ERROR(
        Strategy(recording, session->start(), options, progress).Run(report));
    if (report.verdict == Verdict::kWitness) {
      CLEW_RETURN_IF_ERROR(CheckWitness(recording, report, progress));
    }
  }
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return report;
}

Result<SolveReport> SolveUnder(const follower::Recording& recording,
                               const std::vector<MemoryModelKind>& models,
                               const SolveOptions& options,
                               ProgressSink* progress) {
  const Deadline deadline(options.time_limit_s);
  follower::Recording under = recording;
  SolveOptions with = options;
  SolveReport report;
  bool refuted = true;  // by each model with buffers so far
  for (size_t i = 0; i < models.size() && (i == 0 || !deadline.passed()); ++i) {
    const bool last = i + 1 == models.size();
    under.model = machine::MemoryModelOf(models[i]);
    with.only_model = i > 0 && under.model != nullptr;
    with.time_limit_s = deadline.seconds_left() / (last ? 1 : 2);
    CLEW_ASSIGN_OR_RETURN(found, Solve(under, with, progress));
    report = std::move(found);
    const bool settled =
        report.verdict == Verdict::kUnsat &&
        (report.windows.without_choice || report.in_every_order);
    if (report.verdict == Verdict::kWitness || settled) {
      break;
    }
    refuted &= report.verdict == Verdict::kUnsat || under.model == nullptr;
  }
  if (report.verdict == Verdict::kUnsat && !refuted) {
    report.verdict = Verdict::kUnknown;
    report.difference.reset();
    report.reason = fmt::format(
        "every order under {} was refuted, not every one under the models "
        "before it",
        machine::NameOf(report.model));
  }
  report.seconds = options.time_limit_s - deadline.seconds_left();
  return report;
}

}  // namespace clew::solver
