#include "symbolic/guided_search.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <queue>
#include <unordered_set>
#include <utility>

#include "common/check.h"
#include "common/digest.h"

namespace clew::symbolic {
namespace {

using Clock = std::chrono::steady_clock;

// One decision more than its parent has.
struct Alternative {
  std::optional<OrderEdge> edge;
  std::optional<DelayGate> gate;

  // The instruction that must not have retired yet where a run starts over.
  InsnRef Held() const {
    return gate ? gate->held : edge.value_or(OrderEdge()).after;
  }
  void AddTo(Decisions& decisions) const {
    if (edge) {
      decisions.edges.push_back(*edge);
    }
    if (gate) {
      decisions.gates.push_back(*gate);
    }
  }
};

uint64_t DigestOf(const Decisions& decisions) {
  uint64_t digest = 0;
  const auto mix = [](std::initializer_list<uint64_t> words) {
    uint64_t hash = 1;
    for (const uint64_t word : words) {
      hash = MixBits(hash * 0x9e3779b97f4a7c15u + word);
    }
    return hash;
  };
  for (const OrderEdge& edge : decisions.edges) {
    digest += mix({edge.before.thread, edge.before.insn, edge.after.thread,
                   edge.after.insn});
  }
  for (const DelayGate& gate : decisions.gates) {
    digest += mix({gate.held.thread, gate.held.insn, gate.word, 7});
  }
  return digest;
}

// A run that ended in a contradiction, with what may be tried instead.
struct Node {
  RunOutcome outcome;
  Decisions decisions;
  std::vector<Alternative> alternatives;
  size_t next = 0;
  bool expanded = false;
};

struct Later {
  // Priority: the run that got furthest, then the one with fewer decisions.
  bool operator()(const std::shared_ptr<Node>& a,
                  const std::shared_ptr<Node>& b) const {
    const auto key = [](const Node& node) {
      return std::pair(node.outcome.retired_total,
                       -static_cast<int64_t>(node.decisions.edges.size() +
                                             node.decisions.gates.size()));
    };
    return key(*a) < key(*b);
  }
};

}  // namespace

class GuidedSearch::Impl {
 public:
  Impl(const process::Process& start, const Failure& failure,
       uint64_t slack_ticks, const GuidedSearchOptions& options,
       ProgressSink* progress)
      : start_(start),
        failure_(failure),
        slack_ticks_(slack_ticks),
        options_(options),
        progress_(progress),
        words_(start.thread_count(), slack_ticks) {}

  Result<bool> TryGuess() { return FirstGuess(); }

  Status Learn() {
    return long_run_ ? Status() : LearnSharedWords(*Origin(start_, 0));
  }

  Result<bool> Improve(double seconds) {
    deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(seconds));
    report_.reason.clear();
    if (!other_guesses_tried_) {
      other_guesses_tried_ = true;
      CLEW_RETURN_IF_ERROR(OtherGuesses());
    }
    CLEW_RETURN_IF_ERROR(Expand());
    return report_.found;
  }

  bool long_run() const { return long_run_; }
  WordTable& words() { return words_; }
  const GuidedSearchReport& report() const { return report_; }

  Result<bool> TryDecisions(const Decisions& decisions) {
    std::shared_ptr<Node> node;
    return Try(Origin(start_, 0), decisions, &words_, node);
  }

 private:
  std::shared_ptr<RunPoint> Origin(const process::Process& start,
                                   uint32_t guess_number) const {
    static constexpr uint32_t kGrains[] = {64, 16, 200, 8, 600, 32, 100, 4};
    const GuessOptions options = {
        .seed = options_.seed + guess_number,
        .grain_insns = kGrains[guess_number % std::size(kGrains)]};
    return std::make_shared<RunPoint>(
        RunPoint{.process = start,
                 .rules = OrderRules(start, slack_ticks_),
                 .guess = Guess(start, options),
                 .history = nullptr,
                 .previous = nullptr});
  }

  // Runs and keeps score; true: a witness.
  Result<bool> Try(std::shared_ptr<RunPoint> from, Decisions decisions,
                   WordTable* words, std::shared_ptr<Node>& node) {
    GuidedRunner runner(failure_, words, options_.run, progress_);
    ++report_.runs;
    CLEW_ASSIGN_OR_RETURN(outcome, runner.Run(std::move(from), decisions));
    report_.insns_run += runner.insns_run();
    const bool witness = outcome.end == RunOutcome::End::kWitness;
    long_run_ = long_run_ || outcome.forgot;
    decisions.edges.insert(decisions.edges.end(), outcome.found_edges.begin(),
                           outcome.found_edges.end());
    for (const OrderEdge& edge : outcome.found_edges) {
      std::erase_if(decisions.gates, [&](const DelayGate& gate) {
        return gate.held == edge.after;
      });
    }
    if (witness) {
      report_.found = true;
      report_.steps = CollectSteps(outcome);
      report_.decisions = decisions.edges.size();
      return true;
    }
    ++report_.contradictions;
    if (outcome.retired_total >= report_.furthest_insns) {
      report_.furthest_insns = outcome.retired_total;
      report_.furthest = outcome.contradiction;
    }
    node = std::make_shared<Node>();
    node->outcome = std::move(outcome);
    node->decisions = std::move(decisions);
    return false;
  }

  Result<bool> FirstGuess() {
    std::shared_ptr<Node> node;
    CLEW_ASSIGN_OR_RETURN(found, Try(Origin(start_, 0), {}, nullptr, node));
    report_.guess_was_enough = found;
    if (!found && long_run_) {
      return LearnAround(*node);
    }
    return found;
  }

  // A long run: goes over its end again, from a few points back, and learns.
  Result<bool> LearnAround(const Node& node) {
    auto from = node.outcome.last;
    for (int i = 0; i < 3 && from->previous != nullptr; ++i) {
      from = from->previous;
    }
    CLEW_RETURN_IF_ERROR(LearnSharedWords(*from));
    std::shared_ptr<Node> learned;
    CLEW_ASSIGN_OR_RETURN(found, Try(from, {}, &words_, learned));
    if (!found) {
      queue_.push(std::move(learned));
    }
    return found;
  }

  // The first pass over forced paths tells which words are shared, the second
  // which accesses to them are contested. What it cannot follow (values are
  // wrong) is learned later, by the runs.
  Status LearnSharedWords(const RunPoint& from) {
    GuidedRunOptions options = options_.run;
    options.insns_max = options_.learn_insns_max;
    options.forget_before_insns = ~uint64_t{0} / 4;  // the runs start there
    for (int pass = 0; pass < 2; ++pass) {
      auto forced = std::make_shared<RunPoint>(from);
      forced->process = from.process.Forced();
      forced->previous.reset();
      GuidedRunner runner(failure_, &words_, options, progress_);
      // Where the forced path ends, so does what it teaches.
      (void)runner.Run(std::move(forced), {});
      report_.insns_run += runner.insns_run();
    }
    return {};
  }

  Status OtherGuesses() {
    for (uint32_t i = 0; !long_run_ && i < options_.guesses; ++i) {
      const bool costly = report_.insns_run > options_.guesses_insns_max;
      if (OutOfTime() || (i > 0 && costly)) {
        return {};
      }
      std::shared_ptr<Node> node;
      CLEW_ASSIGN_OR_RETURN(found, Try(Origin(start_, i), {}, &words_, node));
      if (found) {
        return {};
      }
      queue_.push(std::move(node));
    }
    return {};
  }

  bool OutOfTime() {
    if (report_.runs >= options_.runs_max) {
      report_.reason = fmt::format("{} tries", report_.runs);
    } else if (Clock::now() >= deadline_) {
      report_.reason = "the time limit";
    }
    return !report_.reason.empty();
  }

  Status Expand() {
    while (!report_.found && !queue_.empty() && !OutOfTime()) {
      const std::shared_ptr<Node> node = queue_.top();
      if (!node->expanded) {
        node->alternatives = AlternativesOf(*node);
        node->expanded = true;
      }
      if (node->next == node->alternatives.size()) {
        queue_.pop();
        continue;
      }
      CLEW_RETURN_IF_ERROR(Follow(*node, node->alternatives[node->next++]));
    }
    if (!report_.found && report_.reason.empty()) {
      report_.exhausted = true;
      report_.reason = "no alternative is left to try";
    }
    return {};
  }

  Status Follow(const Node& node, const Alternative& alternative) {
    Decisions decisions = node.decisions;
    alternative.AddTo(decisions);
    if (!tried_.insert(DigestOf(decisions)).second) {
      return {};
    }
    const InsnRef held = alternative.Held();
    auto from = node.outcome.last;
    while (from != nullptr &&
           from->process.thread(held.thread).retired > held.insn) {
      from = from->previous;
    }
    if (from == nullptr || IsForgotten(*from)) {
      return {};  // before what is kept of a long run
    }
    std::shared_ptr<Node> child;
    CLEW_ASSIGN_OR_RETURN(
        found, Try(std::move(from), std::move(decisions), &words_, child));
    if (!found) {
      queue_.push(std::move(child));
    }
    return {};
  }

  bool IsForgotten(const RunPoint& point) const {
    for (size_t i = 0; i < point.process.thread_count(); ++i) {
      if (point.process.thread(i).block < point.process.tape().first_block(i)) {
        return true;
      }
    }
    return false;
  }

  // What may be tried instead, most promising first.
  std::vector<Alternative> AlternativesOf(const Node& node) const {
    std::vector<Alternative> result;
    for (const process::Contradiction& held : node.outcome.held_back) {
      MoveReads(static_cast<uint32_t>(held.thread), held.insn_index, 4, result);
    }
    if (node.outcome.end == RunOutcome::End::kStuck) {
      for (uint32_t t = 0; t < node.outcome.retired.size(); ++t) {
        MoveReads(t, node.outcome.retired[t], 2, result);
      }
    } else {
      const auto thread =
          static_cast<uint32_t>(node.outcome.contradiction.thread);
      const uint64_t insn = node.outcome.contradiction.insn_index;
      MoveReads(thread, insn, 16, result);
      TurnPairs(thread, insn, result);
    }
    if (result.size() > options_.alternatives_max) {
      result.resize(options_.alternatives_max);
    }
    return result;
  }

  // A read is moved before the write it took its value from, or delayed.
  void MoveReads(uint32_t thread, uint64_t insn, size_t reads_max,
                 std::vector<Alternative>& result) const {
    std::vector<WordTable::RecentRead> reads = words_.RecentReads(thread, insn);
    if (reads.size() > reads_max) {
      reads.resize(reads_max);
    }
    for (const WordTable::RecentRead& recent : reads) {
      const InsnRef at = recent.read.at;
      Alternative delay;
      delay.gate = DelayGate{.held = at, .word = recent.read.word};
      result.push_back(delay);
      if (recent.foreign_write) {
        Alternative advance;
        advance.edge = OrderEdge{.before = at, .after = *recent.foreign_write};
        result.push_back(advance);
      }
    }
  }

  // Conflicting pairs are turned round: first those on words that the
  // contradicting thread has just read, latest first, then others at random.
  void TurnPairs(uint32_t thread, uint64_t insn,
                 std::vector<Alternative>& result) const {
    const auto turn = [&result](const ContestedPair& pair) {
      Alternative alternative;
      alternative.edge = OrderEdge{.before = pair.second, .after = pair.first};
      result.push_back(alternative);
    };
    std::unordered_set<uint64_t> words;
    for (const auto& recent : words_.RecentReads(thread, insn)) {
      if (words.insert(recent.read.word).second) {
        auto pairs = words_.PairsOf(recent.read.word);
        std::ranges::reverse(pairs);
        std::ranges::for_each(
            pairs.begin(),
            pairs.begin() +
                static_cast<std::ptrdiff_t>(std::min<size_t>(pairs.size(), 16)),
            turn);
      }
    }
    const auto& all = words_.pairs();
    Random random(options_.seed ^ MixBits(report_.runs));
    for (size_t i = 0; !all.empty() && i < 32; ++i) {
      turn(all[random.Below(all.size())]);
    }
  }

  const process::Process& start_;
  const Failure& failure_;
  uint64_t slack_ticks_;
  GuidedSearchOptions options_;
  ProgressSink* progress_;
  WordTable words_;
  Clock::time_point deadline_;
  GuidedSearchReport report_;
  bool long_run_ = false;
  bool other_guesses_tried_ = false;
  std::priority_queue<std::shared_ptr<Node>, std::vector<std::shared_ptr<Node>>,
                      Later>
      queue_;
  std::unordered_set<uint64_t> tried_;
};

GuidedSearch::GuidedSearch(const process::Process& start,
                           const Failure& failure, uint64_t clock_slack_ticks,
                           const GuidedSearchOptions& options,
                           ProgressSink* progress)
    : impl_(std::make_unique<Impl>(start, failure, clock_slack_ticks, options,
                                   progress)) {}

GuidedSearch::~GuidedSearch() = default;

Result<bool> GuidedSearch::TryGuess() { return impl_->TryGuess(); }

Status GuidedSearch::Learn() { return impl_->Learn(); }

Result<bool> GuidedSearch::Improve(double seconds) {
  return impl_->Improve(seconds);
}

Result<bool> GuidedSearch::TryDecisions(const Decisions& decisions) {
  return impl_->TryDecisions(decisions);
}

bool GuidedSearch::long_run() const { return impl_->long_run(); }

WordTable& GuidedSearch::words() { return impl_->words(); }

const GuidedSearchReport& GuidedSearch::report() const {
  return impl_->report();
}

}  // namespace clew::symbolic
