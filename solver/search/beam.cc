#include "solver/search/beam.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "common/check.h"

namespace clew::solver {

using constraints::Executor;
using constraints::StepResult;
using constraints::Verdict;

namespace {

// Of a node with its share of the level's vectors and hash table.
constexpr uint64_t kBytesPerNode = 96;

// log(e^a + e^b), with the larger factored out so that nothing overflows.
// Counts of paths grow exponentially with the steps and soon exceed a double.
double LogOfSum(double a, double b) {
  const double most = std::max(a, b);
  return most + std::log(std::exp(a - most) + std::exp(b - most));
}

}  // namespace

Beam::Beam(Executor& executor, const BeamOptions& options,
           const Deadline& deadline)
    : executor_(executor),
      options_(options),
      deadline_(deadline),
      path_(executor),
      start_(path_.SetMark()) {}

SearchAnswer Beam::Run() {
  for (size_t width = options_.width_min;; width *= 4) {
    switch (RunRound(std::min(width, options_.width_max))) {
      case Round::kWitness:
        return Finish(Verdict::kWitness, "");
      case Round::kRefuted:
        return Finish(Verdict::kUnsat, "");
      case Round::kLimit:
        return Finish(Verdict::kUnknown, limit_);
      case Round::kCut:
        break;
    }
    if (width >= options_.width_max) {
      return Finish(Verdict::kUnknown, "every state that was kept died");
    }
  }
}

void Beam::Reset() {
  path_.RollBack(start_);
  nodes_.clear();
  free_.clear();
  levels_.clear();
  standing_.clear();
}

Beam::Round Beam::RunRound(size_t width) {
  Reset();
  switch (path_.Advance(0)) {
    case SearchPath::Outcome::kWitness:
      return Round::kWitness;
    case SearchPath::Outcome::kDead:
      return Round::kRefuted;
    case SearchPath::Outcome::kChoice:
      break;
  }
  const uint32_t root =
      NewNode({kNone, 0, 1, 0, 0, executor_.StateDigest(), 0});
  standing_.push_back({nodes_[root].serial, path_.SetMark()});
  levels_[path_.log().size()].nodes.push_back(root);
  // A choice takes at least one step, so children are of later levels: the
  // first level gets no further states or paths once it is expanded.
  bool cut = false;
  while (!levels_.empty()) {
    Level level = std::move(levels_.begin()->second);
    levels_.erase(levels_.begin());
    cut |= CutLevel(level, width);
    if (ExpandLevel(level)) {
      return Round::kWitness;
    }
    if (LimitReached()) {
      return Round::kLimit;
    }
  }
  return cut ? Round::kCut : Round::kRefuted;
}

bool Beam::LimitReached() {
  if (deadline_.passed()) {
    limit_ = "time limit";
  } else if (path_.stats().nodes >= options_.nodes_max) {
    limit_ = "node limit";
  } else if (nodes_.size() * kBytesPerNode > options_.memory_bytes_max) {
    limit_ = "memory limit";
  } else {
    return false;
  }
  return true;
}

// Keeps the `width` states with the most paths. Those that are kept for
// certain, and the ties behind them, each stay in the order of the tree, so
// that moving from one state to the next is short.
bool Beam::CutLevel(Level& level, size_t width) {
  if (level.nodes.size() <= width) {
    return false;
  }
  std::vector<double> scores;
  scores.reserve(level.nodes.size());
  for (uint32_t node : level.nodes) {
    scores.push_back(nodes_[node].log_paths);
  }
  std::ranges::nth_element(
      scores, scores.begin() + static_cast<ptrdiff_t>(width), std::greater<>());
  // The best score for which there may be no room: at most `width` are above.
  const double limit = scores[width];
  std::vector<uint32_t> kept;
  for (uint32_t node : level.nodes) {
    if (nodes_[node].log_paths > limit) {
      kept.push_back(node);
    }
  }
  for (uint32_t node : level.nodes) {  // ties: the first ones
    if (nodes_[node].log_paths == limit && kept.size() < width) {
      kept.push_back(node);
    } else if (nodes_[node].log_paths <= limit) {
      Release(node);
    }
  }
  level.nodes = std::move(kept);
  return true;
}

bool Beam::ExpandLevel(Level& level) {
  for (uint32_t node : level.nodes) {
    if (Expand(node)) {
      return true;
    }
    // The level's own use. Children have counted theirs, so that the way to
    // them stays.
    Release(node);
    if (path_.stats().nodes % 256 == 0 && LimitReached()) {
      return false;
    }
  }
  return false;
}

bool Beam::Expand(uint32_t node) {
  ++path_.stats().nodes;
  MoveTo(node);
  const SearchPath::Mark here = standing_.back().mark;
  const double log_paths = nodes_[node].log_paths;
  for (uint32_t t = 0; t < executor_.actor_count(); ++t) {
    if (!executor_.Enabled(t)) {
      continue;
    }
    const StepResult result = path_.Step(t, 0);
    const auto outcome =
        result == StepResult::kContradiction || result == StepResult::kBlocked
            ? SearchPath::Outcome::kDead
            : path_.Advance(0);
    if (outcome == SearchPath::Outcome::kWitness) {
      return true;
    }
    if (outcome == SearchPath::Outcome::kChoice) {
      Keep(node, t, log_paths);
    }
    path_.RollBack(here);
  }
  return false;
}

void Beam::Keep(uint32_t parent, uint32_t thread, double log_paths) {
  Level& level = levels_[path_.log().size()];
  const uint64_t digest = executor_.StateDigest();
  // Of equal states the first one's way is kept: any leads to the same future.
  const auto [found, is_new] = level.by_digest.try_emplace(digest, 0);
  if (!is_new) {
    Node& same = nodes_[found->second];
    same.log_paths = LogOfSum(same.log_paths, log_paths);
    return;
  }
  ++nodes_[parent].uses;
  const uint32_t depth = nodes_[parent].depth + 1;
  found->second = NewNode({parent, thread, 1, depth, log_paths, digest, 0});
  level.nodes.push_back(found->second);
}

// Back to the last common ancestor, then forward by the choices. Compares
// serials: an index may have been given to another node since the executor
// stood there.
void Beam::MoveTo(uint32_t node) {
  std::vector<uint32_t> way;
  for (uint32_t n = node; n != kNone; n = nodes_[n].parent) {
    const size_t depth = nodes_[n].depth;
    if (depth < standing_.size() &&
        standing_[depth].serial == nodes_[n].serial) {
      standing_.resize(depth + 1);
      break;
    }
    way.push_back(n);
  }
  path_.RollBack(standing_.back().mark);
  for (size_t i = way.size(); i-- > 0;) {
    (void)path_.Step(nodes_[way[i]].thread, 0);
    (void)path_.Advance(0);
    standing_.push_back({nodes_[way[i]].serial, path_.SetMark()});
  }
  CLEW_CHECK(executor_.StateDigest() == nodes_[node].digest,
             "a state was not reached again by its own choices");
}

uint32_t Beam::NewNode(Node node) {
  node.serial = next_serial_++;
  if (free_.empty()) {
    nodes_.push_back(node);
    return static_cast<uint32_t>(nodes_.size() - 1);
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  nodes_[index] = node;
  return index;
}

// Drops one use. A node without any is freed, and with it its use of the
// parent: what is left of the tree are the ways to the states that are still
// held.
void Beam::Release(uint32_t node) {
  while (node != kNone && --nodes_[node].uses == 0) {
    free_.push_back(node);
    node = nodes_[node].parent;
  }
}

SearchAnswer Beam::Finish(Verdict verdict, const char* why) {
  SearchAnswer answer;
  answer.verdict = verdict;
  answer.why = why;
  if (verdict == Verdict::kWitness) {
    answer.witness = path_.Order();
  } else {
    path_.RollBack(start_);
  }
  answer.stats = path_.stats();
  answer.stats.states_remembered = nodes_.size();
  answer.deepest_contradiction = path_.deepest_contradiction();
  return answer;
}

}  // namespace clew::solver
