#include "recorder/software/until_fail.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include "bundle/manifest/bundle_writer.h"
#include "common/os/file.h"
#include "common/os/process_state.h"
#include "common/text/signal_text.h"
#include "recorder/software/held_signals.h"
#include "recorder/software/seed_worker.h"

namespace clew::recorder {
namespace {

using bundle::BundleWriter;

// How many runs ended with which exit status.
using StatusCounts = std::map<int32_t, uint32_t>;

// "97 ended with exit status 0, 3 with 7"; the rarest are left out.
std::string Describe(const StatusCounts& counts) {
  constexpr size_t kShownMax = 5;
  std::vector<std::pair<int32_t, uint32_t>> shown(counts.begin(), counts.end());
  std::ranges::stable_sort(shown, std::ranges::greater(),
                           [](const auto& entry) { return entry.second; });
  std::string text;
  for (const auto& [status, runs] : shown | std::views::take(kShownMax)) {
    text +=
        fmt::format("{}{} {} {}", text.empty() ? "" : ", ", runs,
                    text.empty() ? "ended with exit status" : "with", status);
  }
  return shown.size() > kShownMax ? text + ", ..." : text;
}

// `options` are the first run's.
std::unexpected<Error> NoneFailed(const RecordOptions& options,
                                  uint32_t tries_max,
                                  const StatusCounts& counts) {
  const bool all_zero = counts.size() == 1 && counts.contains(0);
  return LimitReached(
      "none of {} runs failed: {}{}{}", tries_max, Describe(counts),
      options.is_free ? ""
                      : fmt::format("; seeds {} to {} were tried", options.seed,
                                    options.seed + tries_max - 1),
      all_zero ? "" : "; --fail-on says which status counts as a failure");
}

Result<RecordOutcome> OneByOne(const RecordOptions& options, uint32_t tries_max,
                               ProgressSink* progress) {
  RecordOptions run = options;
  run.keep_only_if_failed = true;
  StatusCounts counts;
  for (uint32_t i = 0; i < tries_max; ++i) {
    CLEW_ASSIGN_OR_RETURN(outcome, Record(run));
    if (outcome.kept) {
      return outcome;
    }
    ++counts[outcome.failure.exit_status];
    ++run.seed;
    if (progress != nullptr) {
      progress->Update(i + 1, tries_max);
    }
  }
  return NoneFailed(options, tries_max, counts);
}

// The runs of several workers. Tries are counted from 0; they are begun in
// ascending order.
class Search {
 public:
  // `signals` and `progress`, which may be null, must outlive it.
  Search(RecordOptions options, const UntilFail& how,
         const HeldSignals& signals, ProgressSink* progress)
      : options_(std::move(options)),
        how_(how),
        signals_(signals),
        progress_(progress) {}

  // As RecordUntilFail; a bundle is below options.output then. All workers are
  // gone when it returns.
  Result<RecordOutcome> Run() {
    const Status ran = TryUntilDecided();
    workers_.clear();
    CLEW_RETURN_IF_ERROR(ran);
    return decided_ ? *decided_ : NoneFailed(options_, how_.tries_max, counts_);
  }

 private:
  struct Worker {
    SeedWorker process;
    std::optional<uint32_t> current = {};  // its try
  };

  Status TryUntilDecided() {
    CLEW_RETURN_IF_ERROR(StartWorkers());
    for (BeginTries(); AreSomeRunning(); BeginTries()) {
      CLEW_RETURN_IF_ERROR(Wait());
      for (Worker& worker : workers_) {
        if (worker.current) {
          TakeAnswer(worker, *worker.current);
        }
      }
    }
    return {};
  }

  Status StartWorkers() {
    const uint32_t count = std::min(how_.jobs, how_.tries_max);
    workers_.reserve(count);
    for (uint32_t i = 0; i < count; ++i) {
      CLEW_ASSIGN_OR_RETURN(process, SeedWorker::Start(options_, i, [&] {
                              signals_.Restore();
                              CloseSockets();
                            }));
      workers_.push_back({.process = std::move(process)});
    }
    return {};
  }

  // In a worker that was just made: the others' are not its business.
  void CloseSockets() const {
    for (const Worker& other : workers_) {
      close(other.process.socket());
    }
  }

  // None above one that has decided.
  void BeginTries() {
    for (Worker& worker : workers_) {
      if (!worker.current && !decided_ && next_ < how_.tries_max) {
        worker.current = next_++;
        worker.process.Begin(options_.seed + *worker.current);
      }
    }
  }

  bool AreSomeRunning() const {
    return std::ranges::any_of(
        workers_, [](const Worker& w) { return w.current.has_value(); });
  }

  // Until some worker has something to tell.
  Status Wait() const {
    std::vector<pollfd> sockets;
    for (const Worker& worker : workers_) {
      if (worker.current) {
        sockets.push_back(
            {.fd = worker.process.socket(), .events = POLLIN, .revents = 0});
      }
    }
    if (ppoll(sockets.data(), sockets.size(), nullptr, &signals_.wait_mask()) <
            0 &&
        errno != EINTR) {
      return SystemError(errno, "cannot wait for the runs of --jobs");
    }
    if (signals_.came() != 0) {
      return LimitReached("{} ended the search for a run that fails",
                          SignalText(signals_.came()));
    }
    return {};
  }

  // If it is there; of the try `number`.
  void TakeAnswer(Worker& worker, uint32_t number) {
    auto answer = worker.process.Receive();
    if (!answer) {
      return;
    }
    worker.current.reset();
    if (*answer && !(*answer)->kept) {
      ++counts_[(*answer)->failure.exit_status];
      ++done_;
      if (progress_ != nullptr) {
        progress_->Update(done_, how_.tries_max);
      }
      return;
    }
    // Lower than what has decided before, since runs above that were ended.
    decided_ = std::move(*answer);
    for (Worker& other : workers_) {
      if (other.current && (options_.is_free || *other.current > number)) {
        other.current.reset();
        other.process.End();
      }
    }
  }

  const RecordOptions options_;
  const UntilFail how_;
  const HeldSignals& signals_;
  ProgressSink* const progress_;
  std::vector<Worker> workers_;
  uint32_t next_ = 0;  // the try to begin next
  uint32_t done_ = 0;  // how many ended and did not fail
  StatusCounts counts_;
  std::optional<Result<RecordOutcome>> decided_;
};

// The runs' bundles are made in the partial folder of the one that is wanted:
// whatever ends the search, nothing else is left.
Result<RecordOutcome> Together(const RecordOptions& options,
                               const UntilFail& how, const HeldSignals& signals,
                               ProgressSink* progress) {
  CLEW_ASSIGN_OR_RETURN(
      bundle, BundleWriter::Create(PosixFileSystem(), options.output));
  RecordOptions below = options;
  below.output = bundle.folder();
  CLEW_ASSIGN_OR_RETURN(outcome, Search(below, how, signals, progress).Run());
  CLEW_RETURN_IF_ERROR(bundle.PublishInner(BundleOfSeed(outcome.seed)));
  std::erase_if(outcome.left, [](pid_t process) { return !IsAlive(process); });
  return outcome;
}

Result<RecordOutcome> AtOnce(const RecordOptions& options, const UntilFail& how,
                             ProgressSink* progress) {
  int came = 0;
  const auto recorded = [&] {
    const HeldSignals signals;
    auto outcome = Together(options, how, signals, progress);
    came = signals.came();
    return outcome;
  }();
  if (came != 0) {
    (void)raise(came);
  }
  return recorded;
}

}  // namespace

Result<RecordOutcome> RecordUntilFail(const RecordOptions& options,
                                      const UntilFail& how,
                                      ProgressSink* progress) {
  if (how.jobs < 1 || how.jobs > kJobsMax) {
    return InvalidArgument("jobs is {}, must be 1 to {}", how.jobs, kJobsMax);
  }
  return how.jobs == 1 ? OneByOne(options, how.tries_max, progress)
                       : AtOnce(options, how, progress);
}

}  // namespace clew::recorder
