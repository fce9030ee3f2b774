#include "solver/portfolio.h"

#include <algorithm>
#include <memory>

#include "common/check.h"
#include "common/os/deadline.h"
#include "constraints/check_order.h"
#include "constraints/trace_executor.h"
#include "solver/explain.h"
#include "solver/search/beam.h"
#include "solver/search/depth_first.h"
#include "solver/search/repair.h"
#include "solver/smt/z3_backend.h"

namespace clew::solver {

using constraints::CheckOrder;
using constraints::ConstraintTrace;
using constraints::Executor;
using constraints::MeasureAmbiguity;
using constraints::ToAccessOrder;
using constraints::TraceExecutor;
using constraints::Verdict;

namespace {

constexpr uint32_t kHoldsPer1000[] = {5, 50, 200};
constexpr int kFirstBeamRound = 1;
constexpr int kFirstZ3Round = 2;

class Portfolio {
 public:
  Portfolio(Executor& executor, const TraceProvider& provider,
            const PortfolioOptions& options)
      : executor_(executor),
        provider_(provider),
        options_(options),
        deadline_(options.seconds),
        dead_(options.memory_bytes_max / 4),
        directed_dead_(options.memory_bytes_max / 4),
        slice_seconds_(options.first_slice_seconds) {}

  Result<PortfolioReport> Run() {
    bool done = false;
    for (int round = 0; !done && !LimitReached(); ++round) {
      CLEW_ASSIGN_OR_RETURN(answered, RunRound(round));
      done = answered;
      slice_seconds_ *= 2;
    }
    CLEW_RETURN_IF_ERROR(Conclude());
    return std::move(report_);
  }

 private:
  bool LimitReached() {
    if (deadline_.passed()) {
      report_.why = "time limit";
    } else if (report_.stats.nodes >= options_.nodes_max) {
      report_.why = "node limit";
    } else if (!HasOtherThanZ3() && !options_.use_z3) {
      report_.why = "no engine is allowed";
    } else {
      return false;
    }
    return true;
  }

  // True if there is an answer.
  Result<bool> RunRound(int round) {
    if (options_.use_search && SearchOn()) {
      return true;
    }
    if (options_.use_repair && RunRepair()) {
      return true;
    }
    if (options_.use_search && round > 0 && SearchWithHolds(round)) {
      return true;
    }
    if (options_.use_beam && round >= kFirstBeamRound && RunBeam()) {
      return true;
    }
    return UsesZ3() && round >= kFirstZ3Round ? RunZ3() : Result<bool>(false);
  }

  bool UsesZ3() const { return options_.use_z3 && !z3_ended_; }

  // An error of Z3, or of what it needs, ends Z3 alone, where there are others.
  Result<bool> RunZ3() {
    auto answered = AskZ3();
    if (answered || !HasOtherThanZ3()) {
      return answered;
    }
    z3_ended_ = true;
    report_.runs.push_back({.engine = "z3",
                            .verdict = Verdict::kUnknown,
                            .why = answered.error().message,
                            .stats = {},
                            .clauses = 0});
    return false;
  }

  bool HasOtherThanZ3() const {
    return options_.use_search || options_.use_repair || options_.use_beam;
  }

  Deadline Slice() const { return deadline_.Within(slice_seconds_); }

  bool Take(const char* engine, SearchAnswer answer, double seconds) {
    answer.stats.seconds = seconds;
    report_.stats.Add(answer.stats);
    report_.runs.push_back(
        {engine, answer.verdict, answer.why, answer.stats, 0});
    if (answer.stats.deepest >= deepest_) {
      deepest_ = answer.stats.deepest;
      report_.deepest_contradiction = answer.deepest_contradiction;
    }
    if (options_.progress != nullptr) {
      options_.progress->Update(report_.stats.nodes, 0);
    }
    if (answer.verdict == Verdict::kUnknown) {
      return false;
    }
    report_.verdict = answer.verdict;
    report_.engine = engine;
    report_.steps = std::move(answer.witness);
    return true;
  }

  bool Search(const char* engine, DepthFirst& search) {
    const Deadline slice = Slice();
    const double start = deadline_.seconds_left();
    SearchAnswer answer = search.Run(slice);
    return Take(engine, std::move(answer), start - deadline_.seconds_left());
  }

  // The ones that go on where they were.
  bool SearchOn() {
    if (!search_) {
      DepthFirstOptions options;
      options.nodes_max = options_.nodes_max;
      search_ = std::make_unique<DepthFirst>(executor_, dead_, options);
      options.back_jumps = true;
      directed_ =
          std::make_unique<DepthFirst>(executor_, directed_dead_, options);
    }
    return Search("search", *search_) ||
           (!directed_->exhausted() && Search("directed", *directed_));
  }

  bool SearchWithHolds(int round) {
    DepthFirstOptions options;
    options.nodes_max = NodesLeft();
    options.holds_per_1000 =
        kHoldsPer1000[static_cast<size_t>(round) % std::size(kHoldsPer1000)];
    options.seed = options_.seed + static_cast<uint64_t>(round);
    options.back_jumps = round % 2 == 0;
    DepthFirst search(executor_, dead_, options);
    return Search("search with holds", search);
  }

  bool RunRepair() {
    if (!repair_) {
      RepairOptions repair;
      repair.seed = options_.seed;
      repair.moves_max = options_.nodes_max;
      repair_.emplace(executor_, repair);
    }
    const Deadline slice = Slice();
    const double start = deadline_.seconds_left();
    SearchAnswer answer = repair_->Run(slice);
    return Take("repair", std::move(answer), start - deadline_.seconds_left());
  }

  bool RunBeam() {
    const Deadline slice = Slice();
    const double start = deadline_.seconds_left();
    BeamOptions beam;
    beam.memory_bytes_max = options_.memory_bytes_max / 2;
    beam.nodes_max = NodesLeft();
    SearchAnswer answer = Beam(executor_, beam, slice).Run();
    return Take("beam", std::move(answer), start - deadline_.seconds_left());
  }

  uint64_t NodesLeft() const {
    return options_.nodes_max -
           std::min(options_.nodes_max, report_.stats.nodes);
  }

  // nullptr if there is none.
  Result<const ConstraintTrace*> Trace() {
    if (!asked_ && provider_) {
      asked_ = true;
      CLEW_ASSIGN_OR_RETURN(trace, provider_());
      CLEW_RETURN_IF_ERROR(constraints::Validate(trace));
      trace_ = std::move(trace);
    }
    return trace_ ? &*trace_ : nullptr;
  }

  Result<bool> AskZ3() {
    CLEW_ASSIGN_OR_RETURN(trace, Trace());
    if (trace == nullptr || trace->access_count() > options_.z3_accesses_max) {
      return false;
    }
    Z3Options z3;
    z3.seconds = Slice().seconds_left();
    z3.memory_bytes_max = options_.memory_bytes_max;
    CLEW_ASSIGN_OR_RETURN(answer, SolveWithZ3(*trace, z3));
    return TakeZ3(*trace, answer);
  }

  bool TakeZ3(const ConstraintTrace& trace, const Z3Answer& answer) {
    report_.clauses = std::max(report_.clauses, answer.clauses);
    EngineRun run{"z3", answer.verdict, answer.why, {}, answer.clauses};
    run.stats.seconds = answer.seconds;
    if (answer.verdict == Verdict::kWitness) {
      constraints::Assignment unknowns;
      for (const auto& [var, value] : answer.unknowns) {
        unknowns.Set(var, value);
      }
      const Status checked = CheckOrder(trace, answer.order, unknowns);
      if (!checked) {  // it is known to return wrong models
        run.verdict = Verdict::kUnknown;
        run.why = "the checker refused its model: " + checked.error().message;
      }
    }
    if (answer.verdict == Verdict::kUnsat && !options_.trace_is_complete) {
      run.verdict = Verdict::kUnknown;
      run.why = "unsat, but only for the addresses of this trace";
    }
    report_.runs.push_back(run);
    if (run.verdict == Verdict::kUnknown) {
      return false;
    }
    report_.verdict = run.verdict;
    report_.engine = "z3";
    report_.conflicting = answer.conflicting;
    if (run.verdict == Verdict::kWitness) {
      report_.accesses = answer.order;
      report_.unknowns = answer.unknowns;
    }
    return true;
  }

  Status Conclude() {
    report_.seconds = options_.seconds - deadline_.seconds_left();
    report_.why = report_.verdict == Verdict::kUnknown ? report_.why : "";
    if (!options_.trace_is_complete) {
      return {};  // what it says is not what the program does
    }
    CLEW_ASSIGN_OR_RETURN(trace, Trace());
    if (trace == nullptr) {
      return {};
    }
    report_.ambiguity = MeasureAmbiguity(*trace, {});
    if (report_.verdict == Verdict::kUnsat) {
      Explain(*trace);
    }
    return {};
  }

  void Explain(const ConstraintTrace& trace) {
    const Deadline deadline(options_.explain_seconds);
    DecideOptions decide;
    decide.memory_bytes_max = options_.memory_bytes_max;
    decide.use_z3 = options_.use_z3;
    if (auto groups = ExplainUnsat(trace, decide, deadline)) {
      report_.conflicting = std::move(*groups);
    }
    for (constraints::GroupId group : report_.conflicting) {
      report_.conflicting_labels.push_back(trace.groups[group.as_int()].label);
    }
  }

  Executor& executor_;
  const TraceProvider& provider_;
  const PortfolioOptions& options_;
  Deadline deadline_;
  DigestSet dead_;
  DigestSet directed_dead_;
  std::unique_ptr<DepthFirst> search_;
  // Its own set of dead states: one met in another's set would not tell it
  // where to jump.
  std::unique_ptr<DepthFirst> directed_;
  std::optional<Repair> repair_;
  double slice_seconds_;
  uint64_t deepest_ = 0;
  bool asked_ = false;
  bool z3_ended_ = false;
  std::optional<ConstraintTrace> trace_;
  PortfolioReport report_;
};

// For a trace that cannot be executed: a program without any step.
class NothingToRun final : public Executor {
 public:
  uint32_t actor_count() const override { return 0; }
  bool Finished(uint32_t) const override { return true; }
  bool Enabled(uint32_t) const override { return false; }
  constraints::NextStep Next(uint32_t) const override { return {}; }
  constraints::StepResult Step(uint32_t) override {
    return constraints::StepResult::kBlocked;
  }
  Mark SetMark() override { return 0; }
  void RollBack(Mark) override {}
  uint64_t StateDigest() const override { return 0; }
  double GuessKey(uint32_t) const override { return 0; }
  const constraints::Contradiction& last_contradiction() const override {
    return contradiction_;
  }

 private:
  constraints::Contradiction contradiction_;
};

Result<PortfolioReport> SolveWithUnknowns(const TraceProvider& provider,
                                          PortfolioOptions options) {
  options.use_search = options.use_repair = options.use_beam = false;
  options.first_slice_seconds = options.seconds;
  options.z3_accesses_max = ~uint64_t{0};
  NothingToRun nothing;
  return Portfolio(nothing, provider, options).Run();
}

}  // namespace

Result<PortfolioReport> RunPortfolio(Executor& executor,
                                     const TraceProvider& provider,
                                     const PortfolioOptions& options) {
  return Portfolio(executor, provider, options).Run();
}

Result<PortfolioReport> SolveTrace(const ConstraintTrace& trace,
                                   const PortfolioOptions& its_options) {
  PortfolioOptions options = its_options;
  options.trace_is_complete = true;
  const TraceProvider provider = [&]() -> Result<ConstraintTrace> {
    return trace;
  };
  auto executor = TraceExecutor::Create(trace);
  if (!executor) {
    return executor.error().code == ErrorCode::kUnsupported
               ? SolveWithUnknowns(provider, options)
               : std::unexpected(executor.error());
  }
  CLEW_ASSIGN_OR_RETURN(report, RunPortfolio(**executor, provider, options));
  if (report.verdict == Verdict::kWitness && !report.accesses) {
    report.accesses = ToAccessOrder(report.steps);
    const Status checked = CheckOrder(trace, *report.accesses);
    CLEW_CHECK(checked.has_value(), "{} found an order that is none: {}",
               report.engine, checked.error().message);
  }
  return std::move(report);
}

}  // namespace clew::solver
