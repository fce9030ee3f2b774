#include "solver/doubts.h"

#include <fmt/format.h>

#include "solver/kernel_effects.h"

namespace clew::solver {

std::vector<std::string> DoubtsAtOnce(const follower::Recording& recording,
                                      const WordTable& words) {
  std::vector<std::string> doubts = recording.unlogged_inputs;
  if (recording.ran_at_once && recording.model == nullptr) {
    doubts.emplace_back(
        "it was recorded on a processor whose stores other threads see late, "
        "and the search carries them out at once");
  }
  if (words.accesses_dropped() > 0) {
    doubts.push_back(fmt::format(
        "{} accesses to memory were more than are kept to find shared ones",
        words.accesses_dropped()));
  }
  return doubts;
}

std::vector<std::string> DoubtsOf(const follower::Recording& recording,
                                  follower::Tape& tape,
                                  const WordTable& words) {
  std::vector<std::string> doubts = DoubtsAtOnce(recording, words);
  const auto effects = UnorderedKernelEffects(tape, words);
  if (!effects) {
    doubts.push_back(effects.error().message);
    return doubts;
  }
  doubts.insert(doubts.end(), effects->begin(), effects->end());
  return doubts;
}

}  // namespace clew::solver
