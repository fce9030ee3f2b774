#include "collector/jobs/jobs.h"

#include <unistd.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "collector/catalogue/child_reports.h"
#include "collector/catalogue/text.h"
#include "collector/jobs/job.h"
#include "collector/jobs/worker_pool.h"
#include "common/os/confinement.h"

namespace clew::collector {
namespace {

// The system may fail so often for one bundle.
constexpr int kPutOffMax = 3;

class Runner final : public JobRunner {
 public:
  Runner(const JobOptions& options, BundleStore& store, Catalogue& catalogue,
         ScheduleStore& schedules, std::unique_ptr<WorkerPool> pool)
      : options_(options),
        store_(store),
        catalogue_(catalogue),
        schedules_(schedules),
        pool_(std::move(pool)) {
    for (unsigned i = 0; i < options_.analysers; ++i) {
      pool_->Add([this] { return AnalyseOne(); });
    }
    for (unsigned i = 0; i < options_.solvers; ++i) {
      pool_->Add([this] { return SolveOne(); });
    }
  }
  ~Runner() override { pool_->Stop(); }

  void Wake() override { pool_->Wake(); }
  void Stop() override { pool_->Stop(); }
  bool WaitIdle(double seconds) override { return pool_->WaitIdle(seconds); }

  JobCounts counts() const override {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  void Report(std::string_view line) const {
    if (options_.report) {
      options_.report(CleanLine(line, kLineBytesMax));
    }
  }

  // What must not get lost: until it works, or the runner stops; then the
  // bundle is returned at the next start.
  void Persist(const BundleId& id, const std::function<Status()>& write) {
    pool_->Retry([&] {
      const Status written = write();
      if (!written) {
        Report(fmt::format("bundle {}: {}", id.hex(), written.error().message));
      }
      return written.has_value();
    });
  }

  template <class Change>
  void Count(Change change) {
    const std::lock_guard lock(mutex_);
    change(counts_);
  }

  Result<ConfinedChildOutcome> RunCounted(
      const Job& job, Result<ConfinedChildOutcome> (Job::*run)() const) {
    Count([](JobCounts& counts) { ++counts.running; });
    auto outcome = (job.*run)();
    Count([&](JobCounts& counts) {
      --counts.running;
      if (outcome) {
        counts.child_cpu_seconds += outcome->cpu_seconds;
        counts.limits_hit += outcome->end == ConfinedChildEnd::kLimit ? 1 : 0;
      }
    });
    return outcome;
  }

  // Whether this failure may pass, and the bundle was not put off too often.
  bool ShouldPutOff(const BundleId& id, const Error& error) {
    const std::lock_guard lock(mutex_);
    if (error.code != ErrorCode::kSystem) {
      return false;
    }
    if (++put_off_[id] >= kPutOffMax) {
      put_off_.erase(id);
      return false;
    }
    ++counts_.put_off;
    return true;
  }
  void Done(const BundleId& id) {
    const std::lock_guard lock(mutex_);
    put_off_.erase(id);
  }

  // A full disk says nothing of the bundle, and damage is healed by an upload.
  bool MayPass(const BundleId& id, const Error& error) const {
    return error.sys_errno == ENOSPC || error.sys_errno == EDQUOT ||
           (error.code == ErrorCode::kCorruptInput && store_.IsDamaged(id));
  }
  Found PutOff(const BundleId& id, const Error& error) {
    Report(fmt::format("bundle {}: tried again later: {}", id.hex(),
                       error.message));
    Count([](JobCounts& counts) { ++counts.put_off; });
    Persist(id, [&] { return catalogue_.PutOff(id, options_.put_off_s); });
    return error.code == ErrorCode::kSystem ? Found::kTrouble : Found::kWork;
  }

  void GiveBack(const BundleId& id) {
    const SolveOutcome broken_off = {.state = BundleState::kStored};
    Persist(id, [&] { return catalogue_.SetSolved(id, broken_off); });
  }

  Found NoBundle(const Error& error) {
    Report(error.message);
    return Found::kTrouble;
  }

  // ---- Analysis

  Found AnalyseOne() {
    const auto taken = catalogue_.TakeForAnalysis();
    if (!taken) {
      return NoBundle(taken.error());
    }
    const std::optional<BundleId>& waiting = *taken;
    if (!waiting) {
      return Found::kNothing;
    }
    const BundleId id = *waiting;
    const auto analysis = Analyse(id);
    if (!analysis && MayPass(id, analysis.error())) {
      return PutOff(id, analysis.error());
    }
    if (!analysis && ShouldPutOff(id, analysis.error())) {
      Report(fmt::format("bundle {}: put off: {}", id.hex(),
                         analysis.error().message));
      GiveBack(id);
      return Found::kTrouble;
    }
    if (analysis && !*analysis) {  // stopped
      GiveBack(id);
      return Found::kWork;
    }
    FinishAnalysis(id, analysis);
    return Found::kWork;
  }

  // nullopt: the runner stops.
  Result<std::optional<Analysis>> Analyse(const BundleId& id) {
    Job job(options_, store_, pool_->stop_fd());
    CLEW_RETURN_IF_ERROR(job.Prepare(id));
    CLEW_ASSIGN_OR_RETURN(outcome, RunCounted(job, &Job::RunBacktrace));
    if (outcome.end == ConfinedChildEnd::kStopped) {
      return std::nullopt;
    }
    if (outcome.end != ConfinedChildEnd::kExited ||
        outcome.exit_status != kExitOk) {
      return CorruptInput("{}", Describe("clew backtrace", outcome));
    }
    CLEW_ASSIGN_OR_RETURN(analysis, ParseBacktraces(outcome.output));
    return std::optional(std::move(analysis));
  }

  void FinishAnalysis(const BundleId& id,
                      const Result<std::optional<Analysis>>& analysis) {
    if (!analysis) {
      Report(fmt::format("bundle {}: no backtrace, grouped by its kind: {}",
                         id.hex(), analysis.error().message));
    }
    Persist(id, [&]() -> Status {
      if (analysis) {
        const auto kept = catalogue_.SetAnalysis(id, **analysis);
        if (kept || kept.error().code == ErrorCode::kSystem) {
          return kept;
        }
      }
      return SetAnalysisByKind(id);
    });
    Done(id);
    Count([&](JobCounts& counts) {
      ++counts.analyses;
      counts.analyses_failed += analysis ? 0 : 1;
    });
    Wake();
  }

  Status SetAnalysisByKind(const BundleId& id) {
    CLEW_ASSIGN_OR_RETURN(row, catalogue_.Bundle(id));
    if (!row) {
      return {};  // removed meanwhile
    }
    return catalogue_.SetAnalysis(id,
                                  AnalysisByKind(row->failure, row->command));
  }

  // ---- Solving

  Found SolveOne() {
    const auto taken = catalogue_.TakeForSolving();
    if (!taken) {
      return NoBundle(taken.error());
    }
    const std::optional<BundleId>& waiting = *taken;
    if (!waiting) {
      return Found::kNothing;
    }
    const BundleId id = *waiting;
    auto outcome = Solve(id);
    if (!outcome && MayPass(id, outcome.error())) {
      return PutOff(id, outcome.error());
    }
    if (!outcome && ShouldPutOff(id, outcome.error())) {
      Report(fmt::format("bundle {}: put off: {}", id.hex(),
                         outcome.error().message));
      GiveBack(id);
      return Found::kTrouble;
    }
    if (!outcome) {
      Report(fmt::format("bundle {}: {}", id.hex(), outcome.error().message));
      outcome = SolveOutcome{.state = BundleState::kUnsolved,
                             .why = outcome.error().message};
    }
    FinishSolving(id, *outcome);
    return Found::kWork;
  }

  // kStored: the runner stops.
  Result<SolveOutcome> Solve(const BundleId& id) {
    Job job(options_, store_, pool_->stop_fd());
    CLEW_RETURN_IF_ERROR(job.Prepare(id));
    CLEW_ASSIGN_OR_RETURN(child, RunCounted(job, &Job::RunSolve));
    if (child.end == ConfinedChildEnd::kStopped) {
      return SolveOutcome{.state = BundleState::kStored};
    }
    if (child.end != ConfinedChildEnd::kExited) {
      return SolveOutcome{.state = BundleState::kUnsolved,
                          .why = Describe("clew solve", child),
                          .seconds = child.seconds};
    }
    auto outcome = ParseSolveReport(child.output, child.exit_status);
    if (!outcome) {
      return SolveOutcome{.state = BundleState::kUnsolved,
                          .why = Describe("clew solve", child),
                          .seconds = child.seconds};
    }
    if (outcome->state == BundleState::kWitness) {
      CLEW_ASSIGN_OR_RETURN(schedule, job.ReadSchedule());
      CLEW_RETURN_IF_ERROR(schedules_.Put(id, schedule));
    }
    return outcome;
  }

  void FinishSolving(const BundleId& id, const SolveOutcome& outcome) {
    Persist(id, [&] { return catalogue_.SetSolved(id, outcome); });
    if (outcome.state == BundleState::kStored) {
      return;
    }
    Done(id);
    Count([&](JobCounts& counts) {
      ++counts.solves;
      counts.witnesses += outcome.state == BundleState::kWitness ? 1 : 0;
      counts.contradictions +=
          outcome.state == BundleState::kContradiction ? 1 : 0;
      counts.model_differences +=
          outcome.state == BundleState::kModelDiffers ? 1 : 0;
      counts.unsolved += outcome.state == BundleState::kUnsolved ? 1 : 0;
    });
    Wake();
  }

  const JobOptions options_;
  BundleStore& store_;
  Catalogue& catalogue_;
  ScheduleStore& schedules_;

  mutable std::mutex mutex_;  // for the two below
  JobCounts counts_;
  // At most one for each bundle that is not done; gone with it.
  std::map<BundleId, int> put_off_;

  // Last, so that its threads end before what they use.
  const std::unique_ptr<WorkerPool> pool_;
};

Status CheckOptions(const JobOptions& options) {
  if (!options.clew.starts_with('/') ||
      access(options.clew.c_str(), X_OK) != 0) {
    return InvalidArgument(
        "clew program {:?}: needs the absolute path of a program that may be "
        "run",
        options.clew);
  }
  if (options.solvers > JobOptions::kSolversMax) {
    return InvalidArgument("{} solvers, at most {}", options.solvers,
                           JobOptions::kSolversMax);
  }
  if (options.analysers == 0 || options.analysers > JobOptions::kSolversMax) {
    return InvalidArgument("{} analysers, wanted 1 to {}", options.analysers,
                           JobOptions::kSolversMax);
  }
  if (!(options.analysis_time_limit_s > 0) ||
      !(options.solve_time_limit_s > 0)) {
    return InvalidArgument("time limits of {:g} s and {:g} s: must be above 0",
                           options.analysis_time_limit_s,
                           options.solve_time_limit_s);
  }
  return {};
}

// Says so where children can read what the collector's user can.
Status CheckConfinement(const JobOptions& options) {
  CLEW_ASSIGN_OR_RETURN(confinement,
                        Confinement::Make({.program = options.clew,
                                           .folder = options.work_folder,
                                           .readable = {}}));
  if (!confinement.limits_files() && options.report) {
    options.report(
        "no Landlock in this kernel: what a bundle makes of clew could read "
        "the collector's files, proceeding anyway");
  }
  return {};
}

Status EmptyFolder(const std::string& folder) {
  FileSystem& files = PosixFileSystem();
  CLEW_RETURN_IF_ERROR(files.RemoveAll(folder));
  return files.CreateDirectory(folder);
}

}  // namespace

Result<std::unique_ptr<JobRunner>> JobRunner::Start(const JobOptions& options,
                                                    BundleStore& store,
                                                    Catalogue& catalogue,
                                                    ScheduleStore& schedules) {
  CLEW_RETURN_IF_ERROR(CheckOptions(options));
  CLEW_RETURN_IF_ERROR(EmptyFolder(options.work_folder));
  CLEW_RETURN_IF_ERROR(CheckConfinement(options));
  CLEW_RETURN_IF_ERROR(catalogue.ReturnTaken());
  CLEW_ASSIGN_OR_RETURN(pool,
                        WorkerPool::Make(options.retry_s, options.retry_s_max));
  return std::make_unique<Runner>(options, store, catalogue, schedules,
                                  std::move(pool));
}

}  // namespace clew::collector
